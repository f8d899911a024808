"""Labels of lines that say only what varies among them."""

from __future__ import annotations

from collections.abc import Sequence


def differing(labels: Sequence[Sequence[str]]) -> list[str]:
    """Join the parts of each label that not all labels have: ``fp16/threads:4``.

    A label that would be empty keeps its first part, and one that stands alone its first two.

    Args:
        labels: The parts of each label, the most telling first.
    """
    if len(labels) == 1:
        return ["/".join(labels[0][:2])]
    alike = set(labels[0]).intersection(*labels[1:])
    return ["/".join(part for part in label if part not in alike) or label[0] for label in labels]
