"""Photos, sounds and texts as inputs, calibration and labels: what they become, and why."""

from __future__ import annotations

import json
import re
import struct
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from pytest_ortbench.core.case import InputSpec, Provider, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.lfs_pointer import PULL
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.cache import CACHE_VARIABLE
from pytest_ortbench.planning import data_archive
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.image_data import ImageReader
from pytest_ortbench.planning.label_file import read_labels
from pytest_ortbench.planning.matrix import Planned, Target, build_plan
from pytest_ortbench.planning.own_data import Prepared, own_data, prepare
from pytest_ortbench.planning.preparation import Settings
from pytest_ortbench.planning.real_inputs import stored_sets
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.text_data import own_tokenizer
from tests.models.graphs import read

Shape = list[int | str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def model(
    folder: Path,
    shape: Shape,
    *,
    kind: int = TensorProto.FLOAT,
    name: str = "x",
    metadata: dict[str, str] | None = None,
) -> Model:
    """One input that goes out as it is."""
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
    )
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    helper.set_model_props(made, metadata or {})
    return read(made, folder)


def convolution(folder: Path) -> Model:
    """A model with weights, so that it can be quantised, for pictures of 4 × 5."""
    weights = np.ones((2, 3, 1, 1), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 4, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2, 4, 5])],
        [numpy_helper.from_array(weights, "w")],
    )
    return read(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder
    )


def photos(folder: Path, count: int = 3, *, size: tuple[int, int] = (8, 6)) -> Path:
    """Pictures of one colour each: red 40, 80, 120, …; green 10; blue 20."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        picture = Image.new("RGB", size, (40 * (number + 1), 10, 20))
        picture.save(folder / f"p{number}.png")
    return folder


def tone(path: Path, *, rate: int = 8000, count: int = 40, channels: int = 1) -> None:
    """Samples that rise by 256 each, the same in all channels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(channels)
        stream.setsampwidth(2)
        stream.setframerate(rate)
        values = [256 * number for number in range(count) for _ in range(channels)]
        stream.writeframes(struct.pack(f"<{len(values)}h", *values))


def prepared(
    found: Model,
    path: Path,
    *,
    batch: int = 1,
    labels: Path | None = None,
    **settings: str,
) -> Prepared:
    data = own_data(path, labels, settings)
    assert data is not None
    return prepare(data, found, resolve_inputs(found, batch=None, dims={}), batch)


def fed(made: Prepared, name: str = "x") -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    with np.load(made.inputs) as stored:
        return np.asarray(stored[name])


def steps(made: Prepared) -> dict[str, tuple[str, str]]:
    return {step.name: (step.value, step.origin) for step in made.steps}


class TestImages:
    def test_what_nobody_says_has_a_default_with_its_reason(self, tmp_path: Path) -> None:
        made = prepared(model(tmp_path, [1, 3, 4, 5]), photos(tmp_path / "photos"))
        values = fed(made)
        assert (values.shape, values.dtype) == ((1, 3, 4, 5), np.float32)
        assert values[0, :, 0, 0] * 255 == pytest.approx([40, 10, 20])
        assert steps(made) == {
            "images": ("3 in photos", "--ort-inputs"),
            "layout": ("nchw", "shape of the input"),
            "size": ("4x5", "the input 'x'"),
            "resize": ("stretch", "default"),
            "color": ("rgb", "3 channels"),
            "scale": ("1/255", "default"),
            "mean": ("0", "default"),
            "std": ("1", "default"),
        }

    def test_a_configuration_beside_the_model_says_more(self, tmp_path: Path) -> None:
        config = {
            "do_center_crop": True,
            "crop_size": {"height": 6, "width": 6},
            "size": {"shortest_edge": 8},
            "rescale_factor": 0.5,
            "image_mean": [1, 2, 3],
            "image_std": [1, 2, 4],
        }
        found = model(tmp_path, ["N", 3, "H", "W"])
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
        made = prepared(found, photos(tmp_path / "photos"))
        assert fed(made).shape == (1, 3, 6, 6)
        assert fed(made)[0, :, 0, 0] == pytest.approx([19, 1.5, 1.75])
        assert steps(made)["size"] == ("6x6", "preprocessor_config.json")
        assert steps(made)["resize"] == ("crop", "preprocessor_config.json")
        assert steps(made)["mean"] == ("1:2:3", "preprocessor_config.json")

    def test_metadata_goes_before_it_and_the_user_before_both(self, tmp_path: Path) -> None:
        found = model(tmp_path, ["N", 3, "H", "W"], metadata={"imgsz": "[8, 10]", "scale": "2"})
        made = prepared(found, photos(tmp_path / "photos"), scale="1", color="bgr", mean="1:2:3")
        assert fed(made).shape == (1, 3, 8, 10)
        assert fed(made)[0, :, 0, 0] == pytest.approx([19, 8, 37])
        assert steps(made)["size"] == ("8x10", "the model's metadata")
        assert steps(made)["scale"] == ("1", "--ort-preprocess")

    def test_lists_and_capitals_in_metadata_are_read(self, tmp_path: Path) -> None:
        told = {"mean": "[1, 2, 3]", "std": "(1, 2, 4)", "scale": "1", "layout": "NCHW"}
        found = model(tmp_path, [1, 3, 4, 5], metadata={**told, "color": "BGR"})
        made = prepared(found, photos(tmp_path / "photos"))
        assert fed(made)[0, :, 0, 0] == pytest.approx([19, 4, 9.25])
        assert steps(made)["mean"][0] == "1:2:3"

    @pytest.mark.parametrize("typed", [True, False])
    def test_the_example_for_gray_pictures_has_one_number(
        self, tmp_path: Path, typed: bool
    ) -> None:
        found = model(tmp_path, ["N", 1, 4, 5])
        mean = {"mean": "0.5:0.4:0.3"} if typed else {}
        (tmp_path / "preprocessor_config.json").write_text(
            json.dumps({"image_mean": [0.5, 0.4, 0.3]})
        )
        with pytest.raises(UsageError) as caught:
            prepared(found, photos(tmp_path / "photos"), **mean)
        assert "channels" not in caught.value.message
        step = caught.value.hint.rpartition("mean=")[2]
        assert fed(prepared(found, photos(tmp_path / "photos"), mean=step)).shape[1] == 1

    @pytest.mark.parametrize(
        ("metadata", "config", "said_by"),
        [
            ({"mean": "many"}, {}, "the metadata of {}"),
            ({"std": "[0, 0, 0]"}, {}, "the metadata of {}"),
            ({"size": "large"}, {}, "the metadata of {}"),
            ({"color": "cmyk"}, {}, "the metadata of {}"),
            ({"scale": "1e999"}, {}, "the metadata of {}"),
            ({}, {"image_mean": "many"}, "preprocessor_config.json"),
            ({}, {"image_std": [0.5, 0.5]}, "preprocessor_config.json"),
        ],
    )
    def test_who_wrote_a_setting_that_makes_no_sense_is_named(
        self, metadata: dict[str, str], config: dict[str, Any], said_by: str, tmp_path: Path
    ) -> None:
        found = model(tmp_path, ["N", 3, "H", "W"], metadata=metadata)
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
        with pytest.raises(UsageError) as error:
            prepared(found, photos(tmp_path / "photos"))
        assert error.value.place == said_by.format(Path(found.path).name)
        (written,) = metadata or config
        assert f"--ort-preprocess={written.removeprefix('image_')}=" in error.value.hint

    def test_one_number_in_a_configuration_holds_for_all_channels(self, tmp_path: Path) -> None:
        found = model(tmp_path, [1, 3, 4, 5])
        config = {"image_mean": 0, "image_std": 2.0, "rescale_factor": 1}
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
        made = prepared(found, photos(tmp_path / "photos"))
        assert fed(made)[0, :, 0, 0] == pytest.approx([20, 5, 10])

    def test_bytes_are_fed_as_they_are_with_channels_last(self, tmp_path: Path) -> None:
        found = model(tmp_path, [1, 4, 5, 3], kind=TensorProto.UINT8)
        values = fed(prepared(found, photos(tmp_path / "photos")))
        assert (values.shape, values.dtype) == ((1, 4, 5, 3), np.uint8)
        assert values[0, 0, 0].tolist() == [40, 10, 20]

    @pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16"])
    def test_pictures_of_any_mode_have_the_channels_of_the_input(
        self, tmp_path: Path, mode: str
    ) -> None:
        folder = tmp_path / "photos"
        folder.mkdir()
        suffix = "jpg" if mode == "CMYK" else "png"
        Image.new(mode, (8, 6)).save(folder / f"a.{suffix}")
        assert fed(prepared(model(tmp_path, [1, 3, 4, 5]), folder)).shape == (1, 3, 4, 5)

    def test_padding_keeps_the_shape_of_the_picture(self, tmp_path: Path) -> None:
        found = model(tmp_path, [1, 1, 8, 8])
        folder = tmp_path / "photos"
        folder.mkdir()
        Image.new("L", (8, 4), 255).save(folder / "a.png")
        values = fed(prepared(found, folder, resize="pad", scale="1"))[0, 0]
        assert values[:, 0].tolist() == [114, 114, 255, 255, 255, 255, 114, 114]

    def test_examples_fill_batches_and_calibrate(self, tmp_path: Path) -> None:
        found = model(tmp_path, ["N", 3, 4, 5])
        made = prepared(found, photos(tmp_path / "photos", 5), batch=2)
        assert [round(255 * value) for value in fed(made)[:, 0, 0, 0]] == [40, 80]
        assert [specs[0].shape for specs in stored_sets(found, made.calibration)] == [
            (2, 3, 4, 5)
        ] * 2

    def test_other_files_make_another_archive_and_the_same_ones_the_same(
        self, tmp_path: Path
    ) -> None:
        found = model(tmp_path, [1, 3, 4, 5])
        first = prepared(found, photos(tmp_path / "photos")).inputs
        content = first.read_bytes()
        again = prepared(found, photos(tmp_path / "again" / "photos")).inputs
        assert again == first
        Image.new("RGB", (8, 6), "white").save(tmp_path / "photos" / "p2.png")
        other = prepared(found, tmp_path / "photos").inputs
        assert other != first
        assert first.read_bytes() == content

    def test_one_that_is_broken_is_named(self, tmp_path: Path) -> None:
        folder = photos(tmp_path / "photos", 100)
        whole = (folder / "p57.png").read_bytes()
        (folder / "p57.png").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(UsageError, match=r"p57\.png' can't be read as an image"):
            prepared(model(tmp_path, [1, 3, 4, 5]), folder)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"sise": "3"}, "'sise' is not a setting"),
            ({"size": "9x9"}, "size=9x9 can't be used, since the input 'x' requires 4x5"),
            ({"mean": "1:2"}, "mean has 2 numbers, but the input has 3 channels"),
            ({"std": "0"}, "std=0"),
            ({"scale": "a"}, "scale=a is not a list of numbers"),
            ({"scale": "1/0"}, "scale=1/0 is not a list of numbers"),
            ({"scale": "1e999"}, "scale=1e999 is not a finite number"),
            ({"resize": "zoom"}, "'zoom' is not a value of resize"),
            ({"color": "cmyk"}, "'cmyk' is not a value of color"),
            ({"layout": "hwc"}, "'hwc' is not a value of layout"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(
        self, tmp_path: Path, settings: dict[str, str], message: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            prepared(model(tmp_path, [1, 3, 4, 5]), photos(tmp_path / "photos"), **settings)
        assert caught.value.message.startswith(message)

    def test_a_model_that_takes_no_images_says_what_it_takes(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="three or four axes"):
            prepared(model(tmp_path, [1, 7]), photos(tmp_path / "photos"))

    def test_a_model_that_takes_no_text_is_told_each_name_that_would_do(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "t.txt").write_text("a text\n")
        with pytest.raises(UsageError) as caught:
            prepared(model(tmp_path, [1, 7], name="words"), tmp_path / "t.txt")
        for name in ("input_ids", "tokens", "'words'"):
            assert name in caught.value.message


class TestLabels:
    def labelled(self, tmp_path: Path, text: str, classes: str = "") -> list[object]:
        (tmp_path / "labels.csv").write_text(text, "utf-8")
        if classes:
            (tmp_path / "classes.txt").write_text(classes, "utf-8")
        made = prepared(
            model(tmp_path, ["N", 3, 4, 5]),
            photos(tmp_path / "photos"),
            labels=tmp_path / "labels.csv",
        )
        assert made.labelled is not None
        with np.load(made.labelled.path) as stored:
            assert len(stored["x"]) == len(stored["labels"])
            return list(stored["labels"].tolist())

    @pytest.mark.parametrize(
        "text",
        [
            "p0.png,2\np1.png,0\np2.png,1\n",
            "file,label\np2.png,1\np0.png,2\np1.png,0\n",
            "\ufefffile;label\r\np0.png;2\r\np1.png;0\r\np2.png;1\r\n",
            "p0\t2\np1\t0\np2\t1\n\n",
            "./p0.png,2,x\np1.png, 0\n'p2.png',1\n".replace("'", '"'),
        ],
    )
    def test_a_table_of_names_and_numbers(self, tmp_path: Path, text: str) -> None:
        assert self.labelled(tmp_path, text) == [2, 0, 1]

    def test_more_than_fits_into_memory_is_refused_with_what_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bytes_each = 4 * 3 * 4 * 5
        monkeypatch.setattr(data_archive, "available", lambda: int(2.1 * bytes_each / 0.4))
        with pytest.raises(UsageError) as caught:
            self.labelled(tmp_path, "p0.png,1\np1.png,0\np2.png,1\n")
        assert caught.value.place == "--ort-labels"
        assert {int(text) for text in re.findall(r"\b[23]\b", caught.value.message)} == {2, 3}
        assert "2" in caught.value.hint
        monkeypatch.setattr(data_archive, "available", lambda: 10_000_000)
        monkeypatch.setattr(data_archive, "_MOST_BYTES", 100)
        with pytest.raises(UsageError) as caught:
            self.labelled(tmp_path, "p0.png,1\np1.png,0\np2.png,1\n")
        assert re.findall(r"\d+ B", caught.value.message) == ["240 B", "100 B"]
        monkeypatch.setattr(data_archive, "_MOST_BYTES", 500)
        monkeypatch.setattr(data_archive, "_USUALLY_ENOUGH", 1)
        with pytest.raises(UsageError) as caught:
            self.labelled(tmp_path, "p0.png,1\np1.png,0\np2.png,1\n")
        assert "1" in caught.value.hint
        monkeypatch.undo()
        monkeypatch.setattr(data_archive, "available", lambda: int(2.1 * bytes_each / 0.4))
        assert self.labelled(tmp_path, "p0.png,1\np1.png,0\n") == [1, 0]

    def test_files_without_a_label_are_not_scored(self, tmp_path: Path) -> None:
        assert self.labelled(tmp_path, "p2.png,1\n") == [1]

    def test_words_stand_for_their_place_in_the_list_of_classes(self, tmp_path: Path) -> None:
        table = "p0.png,dog\np1.png,cat\n"
        assert self.labelled(tmp_path, table, "cat\ndog\n") == [1, 0]

    def test_a_file_of_labels_is_no_list_of_classes_whatever_its_name(self, tmp_path: Path) -> None:
        """Its words would be numbers of lines."""
        folder = photos(tmp_path / "photos")
        labels = tmp_path / "labels.txt"
        labels.write_text("p0.png,dog\np1.png,cat\np2.png,dog\n", "utf-8")
        taken = model(tmp_path, ["N", 3, 4, 5])
        with pytest.raises(UsageError) as caught:
            prepared(taken, folder, labels=labels)
        assert str(tmp_path / "classes.txt") in caught.value.hint
        (tmp_path / "classes.txt").write_text("cat\ndog\n", "utf-8")
        made = prepared(taken, folder, labels=labels)
        assert made.labelled is not None
        with np.load(made.labelled.path) as stored:
            assert stored["labels"].tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("text", "classes", "message"),
        [
            (
                "p0.png,1\np9.png,2\n",
                "",
                "'p9.png' (labels.csv, line 2) is not a file in",
            ),
            ("p0.png,1\np0.png,2\n", "", "'p0.png' (labels.csv, line 2) already has a label"),
            ("p0.png,1\np1.png\n", "", "'p1.png' (labels.csv, line 2) has no label"),
            ("", "", "labels.csv is empty"),
            (
                "p0.png,dog\n",
                "",
                "labels.csv gives 'p0.png' the label 'dog', but no file says",
            ),
            (
                "p0.png,dgo\n",
                "cat\ndog\n",
                "labels.csv gives 'p0.png' the label 'dgo', which is not in ",
            ),
        ],
    )
    def test_what_is_wrong_is_said_with_its_place(
        self, tmp_path: Path, text: str, classes: str, message: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            self.labelled(tmp_path, text, classes)
        assert caught.value.message.startswith(message)
        assert caught.value.place == "--ort-labels"

    @pytest.mark.parametrize(
        ("text", "classes", "step"),
        [
            ("p0.png 1\np1.png 2\n", "", "comma"),
            ("file label\np1.png 2\n", "", "comma"),
            ("p0.png,1\np1.png,\n", "", "p1.png,3"),
            ("p0.png;1\np1.png\n", "", "p1.png;3"),
            ("p0.png,1\n/data/elk.jpg,2\n", "", "delete the line"),
            ("p0.png,1\np9.png,2\n", "", "Did you mean"),
            ("p0.png,elk\n", "cat\ndog\n", "cat, dog. If none of them fits, remove 'p0.png'"),
        ],
    )
    def test_the_next_step_fits_what_is_wrong(
        self, tmp_path: Path, text: str, classes: str, step: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            self.labelled(tmp_path, text, classes)
        assert step in caught.value.hint


def test_labels_of_files_that_can_not_be_read_are_not_labels_of_arrays(tmp_path: Path) -> None:
    def refused(name: str) -> UsageError:
        (tmp_path / name).touch()
        with pytest.raises(UsageError) as caught:
            own_data(tmp_path, tmp_path / "labels.csv", {})
        return caught.value

    scans, arrays = refused("a.tiff"), refused("a.npy")
    assert scans.place == arrays.place == "--ort-labels"
    assert str(tmp_path) in scans.message
    assert ".npz" in arrays.hint
    assert ".npz" not in scans.hint
    assert "PNG" in scans.hint
    (tmp_path / "a.npy").unlink()
    (tmp_path / "a.tiff").unlink()
    assert ".csv" in refused("a.csv").hint


def test_labels_of_a_folder_without_files_ask_for_the_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        own_data(tmp_path, tmp_path / "labels.csv", {}, with_inputs=False)
    assert str(tmp_path) in caught.value.hint
    assert "--ort-inputs" not in caught.value.hint


@pytest.mark.parametrize("with_inputs", [True, False])
def test_one_photo_is_named_by_its_folder(tmp_path: Path, with_inputs: bool) -> None:
    photo = photos(tmp_path / "photos") / "p0.png"
    for labels, settings in ((tmp_path / "labels.csv", {}), (None, {"scale": "1"})):
        with pytest.raises(UsageError) as caught:
            own_data(photo, labels, settings, with_inputs=with_inputs)
        assert caught.value.place == ("--ort-inputs" if with_inputs else "--ort-dataset")
        assert caught.value.hint.endswith(str(photo.parent))


def test_arrays_are_not_prepared(tmp_path: Path) -> None:
    (tmp_path / "images.npz").touch()
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "x.npy").touch()
    for path in (tmp_path / "images.npz", tmp_path / "arrays"):
        with pytest.raises(UsageError) as caught:
            own_data(path, None, {"scale": "1/255"})
        assert caught.value.place == "--ort-preprocess"
        assert "photos/" not in caught.value.hint


def test_a_file_of_boxes_is_no_list_of_labels(tmp_path: Path) -> None:
    labels = tmp_path / "labels.json"
    option = f"--ort-dataset=coco:{labels} "
    for text, is_coco in [
        ('{"images": [], "annotations": []}', True),
        ('{"a.jpg": 3}', False),
        ("[", False),
    ]:
        labels.write_text(text)
        with pytest.raises(UsageError) as caught:
            read_labels(labels, ["a.jpg"], tmp_path)
        assert (option in caught.value.hint, "a.jpg,3" in caught.value.hint) == (
            is_coco,
            not is_coco,
        )


def test_a_picture_that_can_not_be_read_has_a_step_that_keeps_its_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec,) = resolve_inputs(model(tmp_path, ["N", 3, 4, 5]), batch=None, dims={})
    reader = ImageReader(spec, Settings(model="m.onnx", given={}, metadata={}, configuration={}))
    file = photos(tmp_path, 1, size=(80, 60)) / "p0.png"
    whole = file.read_bytes()

    def step(size: tuple[int, int] | None) -> str:
        with pytest.raises(UsageError) as caught:
            reader.read_placed(file, size)
        return caught.value.hint

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert "smaller" in step(None)
    assert "boxes" in step((80, 60))
    monkeypatch.undo()
    file.write_bytes(whole[: len(whole) // 2])
    assert "again" in step((80, 60))
    assert "again" in step(None)
    file.write_text("no picture")
    assert "PNG" in step(None)


class TestAudio:
    def test_samples_are_cut_or_filled_with_silence(self, tmp_path: Path) -> None:
        tone(tmp_path / "wav" / "a.wav", count=3, channels=2)
        made = prepared(model(tmp_path, ["N", 5]), tmp_path / "wav")
        assert fed(made)[0].tolist() == [0, 1 / 128, 2 / 128, 0, 0]
        assert steps(made)["rate"] == ("8000", "rate of the files")

    def test_a_wrong_rate_is_called_as_it_is_where_it_stands(self, tmp_path: Path) -> None:
        tone(tmp_path / "wav" / "a.wav")
        (tmp_path / "preprocessor_config.json").write_text('{"sampling_rate": 0}')
        for given, called in (({}, "sampling_rate"), ({"rate": "0"}, "rate")):
            with pytest.raises(UsageError) as caught:
                prepared(model(tmp_path, ["N", 5]), tmp_path / "wav", **given)
            assert caught.value.message.split()[0] == called

    def test_another_rate_than_the_model_s_is_resampled(self, tmp_path: Path) -> None:
        (tmp_path / "wav").mkdir()
        wave_of = np.sin(2 * np.pi * 440 * np.arange(4000) / 8000)
        with wave.open(str(tmp_path / "wav" / "a.wav"), "wb") as stream:
            stream.setparams((1, 2, 8000, 0, "NONE", ""))
            stream.writeframes((wave_of * 32000).astype("<i2").tobytes())
        (tmp_path / "preprocessor_config.json").write_text('{"sampling_rate": 16000}')
        made = prepared(model(tmp_path, ["N", 8000]), tmp_path / "wav")
        again = np.sin(2 * np.pi * 440 * np.arange(8000) / 16000) * 32000 / 2**15
        assert fed(made)[0][500:7500] == pytest.approx(again[500:7500], abs=5e-3)
        assert steps(made)["resampled"] == ("8000 to 16000", "rate of the files")

    def test_without_a_library_that_resamples_another_rate_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pytest_ortbench.planning.audio_data.find_spec", lambda _: None)
        tone(tmp_path / "wav" / "a.wav")
        (tmp_path / "preprocessor_config.json").write_text('{"sampling_rate": 16000}')
        with pytest.raises(UsageError, match="8000 samples per second, but the model takes 16000"):
            prepared(model(tmp_path, ["N", 5]), tmp_path / "wav")
        assert fed(prepared(model(tmp_path, ["N", 5]), tmp_path / "wav", rate="8000")).shape == (
            1,
            5,
        )

    def test_where_nobody_says_a_rate_two_files_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pytest_ortbench.planning.audio_data.find_spec", lambda _: None)
        tone(tmp_path / "wav" / "a.wav")
        tone(tmp_path / "wav" / "b.wav", rate=16000)
        with pytest.raises(UsageError) as caught:
            prepared(model(tmp_path, ["N", 5]), tmp_path / "wav")
        assert all(name in caught.value.message for name in ("a.wav", "b.wav", "8000", "16000"))

    def test_what_is_no_wav_file_is_named(self, tmp_path: Path) -> None:
        tone(tmp_path / "wav" / "a.wav")
        (tmp_path / "wav" / "b.wav").write_bytes(b"RIFF")
        with pytest.raises(UsageError, match=r"b\.wav") as cut_off:
            prepared(model(tmp_path, ["N", 5]), tmp_path / "wav")
        assert "ffmpeg" not in cut_off.value.hint
        (tmp_path / "wav" / "b.wav").write_bytes(b"ID3\x04 no sound of ours")
        with pytest.raises(UsageError, match=r"b\.wav") as foreign:
            prepared(model(tmp_path, ["N", 5]), tmp_path / "wav")
        assert "ffmpeg" in foreign.value.hint

    def test_the_rate_itself_is_fed_to_labelled_sounds_too(self, tmp_path: Path) -> None:
        tone(tmp_path / "wav" / "a.wav")
        (tmp_path / "labels.csv").write_text("a.wav,1\n")
        found = model(tmp_path, ["N", 5])
        rate = TensorInfo(name="sr", type="tensor(int64)", shape=())
        made = prepared(
            replace(found, inputs=(*found.inputs, rate)),
            tmp_path / "wav",
            labels=tmp_path / "labels.csv",
        )
        assert made.labelled is not None
        with np.load(made.labelled.path) as stored:
            assert stored["shared:sr"].tolist() == 8000


class TestText:
    def test_lines_become_token_ids_of_one_length(self, tmp_path: Path) -> None:
        pytest.importorskip("tokenizers")
        vocabulary = {"[PAD]": 0, "[UNK]": 1, "good": 2, "bad": 3}
        tokenizer = {
            "version": "1.0",
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
            "pre_tokenizer": {"type": "Whitespace"},
            "added_tokens": [],
        }
        (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
        (tmp_path / "lines.txt").write_text("good bad\n\nbad film good good good\n")
        (tmp_path / "labels.csv").write_text("1\n0\n")
        found = model(tmp_path, ["batch", 4], kind=TensorProto.INT64, name="input_ids")
        made = prepared(found, tmp_path / "lines.txt", batch=2, labels=tmp_path / "labels.csv")
        assert fed(made, "input_ids").tolist() == [[2, 3, 0, 0], [3, 1, 2, 2]]
        assert made.labelled is not None
        with np.load(made.labelled.path) as stored:
            assert stored["labels"].tolist() == [1, 0]

    def test_a_tokenizer_that_git_lfs_left_out_is_fetched(self, tmp_path: Path) -> None:
        pytest.importorskip("tokenizers")
        (tmp_path / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\n")
        with pytest.raises(UsageError) as caught:
            own_tokenizer(tmp_path / "model.onnx", place="--ort-text")
        assert (caught.value.place, caught.value.hint) == ("--ort-text", PULL)

    def test_without_a_tokenizer_it_says_where_one_belongs(self, tmp_path: Path) -> None:
        (tmp_path / "lines.txt").write_text("good\n")
        found = model(tmp_path, ["batch", 4], kind=TensorProto.INT64, name="input_ids")
        with pytest.raises(UsageError, match=r"tokenizer\.json"):
            prepared(found, tmp_path / "lines.txt")


class TestPlan:
    def plan(self, found: Model, request: PlanRequest) -> list[Planned]:
        cpu = Provider(alias="cpu", name="CPUExecutionProvider")
        return list(
            build_plan(request, [found], [Target(runtime=Runtime(), providers=(cpu,))]).entries
        )

    def test_one_folder_is_fed_calibrates_and_is_scored(self, tmp_path: Path) -> None:
        found = model(tmp_path, ["N", 3, 4, 5])
        folder, labels = photos(tmp_path / "photos"), tmp_path / "labels.csv"
        labels.write_text("p0.png,1\np1.png,0\n")
        by_inputs = PlanRequest(
            models=(), inputs=folder, labels=labels, precisions=("native", "int8-static")
        )
        by_dataset = PlanRequest(
            models=(),
            dataset=Dataset(path=str(folder)),
            labels=labels,
            precisions=("native", "int8-static"),
        )
        for request in (by_inputs, by_dataset):
            for planned in self.plan(found, request):
                spec: InputSpec = planned.case.inputs[0]
                assert Path(spec.path).name == "photos.npz"
                assert not planned.case.draws_inputs
                assert spec.prepared[0].value == "3 in photos"
                assert planned.case.dataset is not None
                assert planned.case.dataset.label == "photos.npz"
                assert planned.case.file_contents[spec.path]
                assert not planned.case.is_scored_on_calibration  # nothing of it is calibrated

    def test_scores_on_samples_that_calibrate_are_known(self, tmp_path: Path) -> None:
        folder, labels = photos(tmp_path / "photos"), tmp_path / "labels.csv"
        labels.write_text("p0.png,1\np1.png,0\n")
        request = PlanRequest(
            models=(), inputs=folder, labels=labels, precisions=("native", "int8-static")
        )
        as_it_is, made = self.plan(convolution(tmp_path), request)
        assert not as_it_is.case.is_scored_on_calibration
        assert made.case.is_scored_on_calibration
        without = self.plan(convolution(tmp_path), replace(request, labels=None))
        assert [planned.case.variant.on_calibration for planned in without] == [False, True]
        assert not any(planned.case.is_scored_on_calibration for planned in without)

    def test_scores_on_other_samples_than_those_that_calibrate_are_no_such_scores(
        self, tmp_path: Path
    ) -> None:
        scored = tmp_path / "labelled" / "scored.npz"
        scored.parent.mkdir()
        np.savez(scored, x=np.zeros((2, 3, 4, 5), np.float32), labels=np.zeros(2, np.int64))
        request = PlanRequest(
            models=(),
            inputs=photos(tmp_path / "photos"),
            dataset=Dataset(path=str(scored)),
            precisions=("int8-static",),
        )
        (planned,) = self.plan(convolution(tmp_path), request)
        assert planned.case.variant.on_calibration
        assert not planned.case.is_scored_on_calibration

    def test_a_size_is_said_to_be_that_of_the_photos(self, tmp_path: Path) -> None:
        found = model(tmp_path, ["N", 3, "height", "width"])
        request = PlanRequest(models=(), inputs=photos(tmp_path / "photos"))
        (planned,) = self.plan(found, request)
        origins = {size.symbol: size.how for size in planned.case.inputs[0].resolved}
        assert {origins["height"], origins["width"]} == {"in photos"}

    @pytest.mark.parametrize(
        ("request_", "place"),
        [
            (PlanRequest(models=(), labels=Path("labels.csv")), "--ort-labels"),
            (PlanRequest(models=(), preprocess={"scale": "1"}), "--ort-preprocess"),
        ],
    )
    def test_what_is_about_no_files_is_refused(
        self, tmp_path: Path, request_: PlanRequest, place: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            self.plan(model(tmp_path, ["N", 3, 4, 5]), request_)
        assert caught.value.place == place

    def test_a_folder_that_is_scored_needs_labels(self, tmp_path: Path) -> None:
        request = PlanRequest(models=(), dataset=Dataset(path=str(photos(tmp_path / "photos"))))
        with pytest.raises(UsageError, match="have no labels") as caught:
            self.plan(model(tmp_path, ["N", 3, 4, 5]), request)
        assert "=labels.csv" in caught.value.hint

    def test_texts_that_are_scored_need_a_label_a_line(self, tmp_path: Path) -> None:
        (tmp_path / "texts.txt").write_text("a\nb\n")
        request = PlanRequest(models=(), dataset=Dataset(path=str(tmp_path / "texts.txt")))
        with pytest.raises(UsageError) as caught:
            self.plan(model(tmp_path, ["N", 3, 4, 5]), request)
        assert caught.value.place == "--ort-dataset"
        assert "=labels.txt" in caught.value.hint

    @pytest.mark.parametrize("option", ["--ort-inputs", "--ort-dataset"])
    def test_a_broken_file_is_refused_at_the_option_that_names_its_folder(
        self, tmp_path: Path, option: str
    ) -> None:
        folder = photos(tmp_path / "photos")
        (folder / "p0.png").write_bytes(b"broken")
        (tmp_path / "labels.csv").write_text("p0.png,1\np1.png,0\n")
        request = PlanRequest(models=(), labels=tmp_path / "labels.csv")
        request = (
            replace(request, inputs=folder)
            if option == "--ort-inputs"
            else replace(request, dataset=Dataset(path=str(folder)))
        )
        with pytest.raises(UsageError) as caught:
            self.plan(model(tmp_path, ["N", 3, 4, 5]), request)
        assert caught.value.place == option
