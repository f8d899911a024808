"""Whatever goes wrong while pictures and pages are drawn costs neither table nor document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK, told

ModelFile = Callable[..., Path]


def test_a_warning_while_drawing_is_no_error_where_warnings_are(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makeconftest(
        """
        import warnings
        import pytest_ortbench.report.figures as figures

        render = figures.render

        def warning_render(*arguments, **more):
            warnings.warn("Glyph 27169 missing from font(s) DejaVu Sans.", UserWarning)
            return render(*arguments, **more)

        def pytest_configure():
            figures.render = warning_render
        """
    )
    pytester.makeini("[pytest]\nfilterwarnings = error")
    result = pytester.runpytest_subprocess(
        "mlp.onnx", "-k", "latency", "-p", "no:benchmark", "-p", "no:xdist", *QUICK
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["* native/cpu/b1 *", "run: *", "plots: *"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert list(pytester.path.glob("results/*/plots/*.png"))


def test_a_defect_of_a_picture_is_reported_behind_the_table(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makeconftest(
        """
        import pytest_ortbench.report.figures

        def write_figures(*_, **__):
            raise RuntimeError("can not draw\\nthis")

        def pytest_configure():
            pytest_ortbench.report.figures.write_figures = write_figures
        """
    )
    command = ("mlp.onnx", "-k", "latency", "--ort-html=page.html", "-p", "no:benchmark", *QUICK)
    result = pytester.runpytest_subprocess(*command)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["* native/cpu/b1 *", "run: *", "report: page.html"])
    (text,) = told(result, "plots")
    assert text.startswith("RuntimeError: can not draw. ")
    # One that was asked for is missed.
    result = pytester.runpytest_subprocess(*command, "--ort-plots=drawn")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_a_folder_of_the_project_that_hides_a_library_is_the_cause_of_a_lost_picture(
    library: str, pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    """The project is told its folder, and not that this package is defective."""
    model_file()
    pytester.makeconftest("")
    pytester.mkpydir(library)
    result = pytester.runpytest_subprocess(
        "mlp.onnx", "-k", "latency", "--ort-html=page.html", "-p", "no:benchmark", *QUICK
    )
    texts = [*told(result, "plots"), *told(result, "--ort-html")]
    folder = str(pytester.path / library)
    assert {text.startswith(f"{folder} hides ") for text in texts} == {True}
