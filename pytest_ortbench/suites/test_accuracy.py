"""Are the outputs right, compared with fp32 on the CPU without optimisation?

Each precision has a minimum that it must reach. To set your own:

    @pytest.mark.ortbench(limits=["accuracy_sqnr >= 40 dB", "accuracy_top1 >= 99 %"])

With labelled data (--ort-dataset) the metric of the task decides instead: at least 99 % of
fp32's metric must be kept. Limits of your own: "task_metric >= 0.75", "task_kept >= 99.9 %".
"""

import pytest


def test_accuracy(ortbench):
    """No output is below the floor of its precision, and none holds NaN or infinity."""
    wrong = [flag for flag in ortbench.result.flags if flag.name in ("INACCURATE", "NONFINITE")]
    if wrong:
        pytest.fail("; ".join(f"{flag.name}: {flag.detail}" for flag in wrong), pytrace=False)
    if (task := ortbench.task_facts()) is not None and task.reason:
        pytest.fail(f"no task metric from {task.dataset}: {task.reason}", pytrace=False)
    judgements = ortbench.judgements()
    accuracy = judgements["accuracy"]
    if accuracy.is_unjudged:
        pytest.skip(f"could not be judged: {accuracy.reason}")
    if not accuracy.is_good:
        pytest.fail(accuracy.reason, pytrace=False)
    labelled = judgements.get("task", accuracy)
    if labelled.is_unjudged:
        pytest.skip(f"could not be judged on labelled data: {labelled.reason}")
