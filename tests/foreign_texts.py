"""Texts that branches may look at, and why: others wrote them, or they are names and no sentences.

A text that the product itself writes for people is not among them: what decides is a field.
"""

from __future__ import annotations

#: Modules that read nothing but texts of others, and whose.
WHOLE_MODULES: dict[str, str] = {
    "convert/check.py": "messages of ONNX Runtime",
    "convert/failure.py": "messages of tools that convert",
    "convert/half.py": "types of operators, as the standard spells them",
    "core/free_memory.py": "files of the system",
    "core/secrets.py": "texts of users",
    "convert/variants.py": "files of the system",
    "engines/tract/worker.py": "messages of tract, types as ONNX Runtime spells them",
    "engines/mnn/worker.py": "log of the converter of MNN, types as ONNX Runtime spells them",
    "engines/openvino_native/worker.py": "names of devices and properties of OpenVINO",
    "launch/diagnose.py": "messages of ONNX Runtime and its providers",
    "launch/diagnose_providers.py": "messages of ONNX Runtime and its providers",
    "launch/machine.py": "files of the system, output of git",
    "launch/missing_library.py": "messages of loaders of libraries",
    "launch/native_text.py": "messages and logs of native code",
    "launch/noise.py": "files of the system",
    "models/cache_pairs.py": "names of inputs, outputs and sizes in a graph",
    "models/language_config.py": "names in configurations of others",
    "models/decoders.py": "names of inputs and outputs, types as ONNX Runtime spells them",
    "models/axes/layout_rules.py": "types of operators",
    "models/axes/mixing_rules.py": "types of operators, their attributes",
    "models/encoders.py": "names of inputs and files, types as ONNX Runtime spells them",
    "models/external_data.py": "places in a model file",
    "models/implied.py": "types of operators",
    "models/installer.py": "output of an installer",
    "models/model_file.py": "the beginning of a file",
    "models/naming.py": "names of files",
    "models/sources.py": "the beginning of a file, names of members of an archive",
    "models/revisions.py": "the beginning of a file, names of files",
    "models/signals.py": "names of inputs and sizes in a graph, types as ONNX Runtime spells them",
    "models/stand_ins.py": "names of attributes of operators",
    "models/symbols.py": "expressions over sizes of a graph",
    "models/well_known.py": "names of inputs, types as ONNX Runtime spells them",
    "planning/default_sizes.py": "names of inputs and sizes in a graph",
    "planning/encoders.py": "names of inputs, types as ONNX Runtime spells them",
    "planning/graph_counts.py": "names of inputs and sizes in a graph",
    "runtimes/auto.py": "names of the system",
    "runtimes/installed.py": "names of packages and files",
    "runtimes/cpu_builds.py": "versions of packages",
    "runtimes/installer.py": "output of pip and uv",
    "runtimes/interpreters.py": "names of files",
    "schema/migrations.py": "sentences of older versions of the document",
    "worker/agreement.py": "names of outputs",
    "worker/contention.py": "files of the system",
    "worker/element_types.py": "types as ONNX Runtime spells them",
    "worker/gpu_choice.py": "what CUDA_VISIBLE_DEVICES holds",
    "worker/gpus.py": "what CUDA_VISIBLE_DEVICES holds",
    "passes/task/worker/box_forms.py": "names of outputs",
    "passes/task/worker/labelled.py": "names of arrays in the user's file",
    "passes/load/worker/log.py": "logs of the load generator",
    "worker/ort_values.py": "types as ONNX Runtime spells them",
    "worker/placement.py": "types of operators",
    "worker/plugins.py": "names of packages, what ONNX Runtime says of its build",
    "worker/profile_events.py": "the profile of ONNX Runtime",
    "passes/energy/worker/rapl.py": "names of the system",
    "worker/runtime.py": "messages of numpy, names of packages",
    "worker/session.py": "identifiers of devices",
    "worker/session_entries.py": "keys of ONNX Runtime, searched in its libraries",
}

#: Functions that read such texts, by module: why, and which.
FUNCTIONS: dict[str, tuple[str, frozenset[str]]] = {
    "passes/profile/worker/operators.py": (
        "types as ONNX Runtime spells them",
        frozenset({"profile_operators"}),
    ),
    "passes/profile/numbers/bottlenecks.py": ("types of operators", frozenset({"_one_operator"})),
    "passes/stages/numbers.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"add_stages"}),
    ),
    "cli/application.py": ("what users write", frozenset({"LazyCommands.resolve_command"})),
    "cli/models.py": ("types as ONNX Runtime spells them", frozenset({"_tensor"})),
    "passes/profile/command.py": ("what users write", frozenset({"_is_case_id", "_stored"})),
    "cli/selection.py": ("what users write", frozenset({"parse_condition", "select"})),
    "core/acceptance.py": ("what users write", frozenset({"AcceptedEntry.is_about", "_fits"})),
    "core/ids.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"id_fits", "is_whole_id", "model_of", "model_part"}),
    ),
    "core/limits.py": ("what users write", frozenset({"_meant", "parse_limit"})),
    "passes/load/numbers/spec.py": ("what users write", frozenset({"_percent"})),
    "core/patterned.py": ("what users write", frozenset({"refuse_unfitting"})),
    "core/precision.py": ("types of operators", frozenset({"own_precision"})),
    "core/units.py": ("what users write", frozenset({"parse_amount", "parse_duration"})),
    "engines/torch/export.py": (
        "messages of PyTorch's exporters",
        frozenset({"exporter_refusal", "_operators"}),
    ),
    "engines/registry.py": ("names of packages", frozenset({"framework_of_model"})),
    "worker/entry.py": ("names of files", frozenset({"_modules_beside"})),
    "worker/python_operators.py": ("names of packages", frozenset({"_operators"})),
    "fleet/report/figures.py": ("a number as it is formatted", frozenset({"_ratio_axis"})),
    "fleet/report/html.py": ("each note is told once", frozenset({"_cells"})),
    "gate/measuring/trial_log.py": ("the end of a file", frozenset({"_drop_torn_line"})),
    "gate/numbers/acceptance.py": ("digests", frozenset({"Acceptances._state"})),
    "gate/numbers/rules.py": (
        "what users write",
        frozenset({"_allowance", "_parse", "refuse_idle_sides"}),
    ),
    "launch/launcher.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"_took_nothing"}),
    ),
    "launch/remote_shell.py": ("what users write", frozenset({"_behind_options"})),
    "models/hints.py": (
        "names of inputs, types as ONNX Runtime spells them",
        frozenset({"_counted", "default_hint"}),
    ),
    "models/resolve.py": ("names of files", frozenset({"_Resolver._matching", "_hidden"})),
    "planning/against.py": ("what users write", frozenset({"Against._meant"})),
    "planning/axes.py": (
        "what users write",
        frozenset({"_name_and_sizes", "parse_int", "starts_setting"}),
    ),
    "planning/audio_data.py": (
        "types as ONNX Runtime spells them",
        frozenset({"AudioReader.__init__", "AudioReader.rate_inputs"}),
    ),
    "planning/engines.py": ("names of packages", frozenset({"engines_lacking"})),
    "planning/image_data.py": (
        "keys of configurations of others, modes of pictures",
        frozenset({"_configured_size", "_flat"}),
    ),
    "planning/own_data.py": (
        "types as ONNX Runtime spells them, names of files",
        frozenset({"_files", "_labels"}),
    ),
    "planning/text_data.py": (
        "types as ONNX Runtime spells them",
        frozenset({"TextReader.read", "token_inputs"}),
    ),
    "planning/batch_axis.py": (
        "names of dimensions and inputs, types as ONNX Runtime spells them",
        frozenset({"find_batch", "_named", "_states"}),
    ),
    "passes/task/planning.py": (
        "what users write, names of files and of arrays in them",
        frozenset({"_check_npz", "_split", "parse_dataset"}),
    ),
    "planning/devices.py": (
        "what users write",
        frozenset({"_hardware", "check_openvino", "device_options"}),
    ),
    "planning/families.py": ("what users write", frozenset({"_rebased"})),
    "planning/feeds.py": (
        "types as ONNX Runtime spells them",
        frozenset({"_spec", "_text", "resolve_hint"}),
    ),
    "planning/planned_again.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"request_of"}),
    ),
    "planning/project_root.py": ("what users write", frozenset({"_configures_pytest"})),
    "planning/provider_options.py": ("what users write", frozenset({"_check_value"})),
    "planning/providers.py": (
        "what users write",
        frozenset({"_may_be_plugin", "_starts_spec", "_unknown"}),
    ),
    "planning/real_inputs.py": (
        "names of files, types",
        frozenset({"_from_npz", "_from_pb", "_missing", "is_prepared", "_stored"}),
    ),
    "planning/recipes.py": (
        "names of recipes, flags of a processor",
        frozenset({"_near_and_known", "products_may_saturate"}),
    ),
    "planning/sides.py": ("what users write", frozenset({"parse_side"})),
    "planning/sizes.py": (
        "names of dimensions and inputs",
        frozenset({"ModelAxes.cache", "ModelAxes.totals", "find_sizes"}),
    ),
    "planning/variants.py": ("names of files and operators", frozenset({"_refusal", "variant_of"})),
    "plugin/__init__.py": (
        "names of fixtures",
        frozenset({"pytest_generate_tests", "pytest_itemcollected"}),
    ),
    "plugin/benchmark_bridge.py": (
        "names of fixtures",
        frozenset(
            {
                "_StandIn.benchmark",
                "_join",
                "_offers_fixture",
                "_replay_case",
                "_takes_theirs",
                "pytest_benchmark_compare_machine_info",
                "pytest_itemcollected",
            }
        ),
    ),
    "plugin/collection.py": ("names of files", frozenset({"_named_tests"})),
    "plugin/marked_paths.py": ("what users write", frozenset({"_placed", "with_folders"})),
    "plugin/marked_tests.py": (
        "what users write",
        frozenset({"_names_us", "is_chosen_by_marker"}),
    ),
    "plugin/measured.py": ("names of attributes", frozenset({"View.__getattr__"})),
    "plugin/model_files.py": (
        "names of files and tests",
        frozenset({"Suite.istestfunction", "is_suite", "merged_suites"}),
    ),
    "plugin/option_readers.py": ("what users write", frozenset({"_rebase", "read_baseline"})),
    "plugin/option_sources.py": ("what users write", frozenset({"_text_of"})),
    "report/escape.py": ("what a spreadsheet would compute", frozenset({"csv_text"})),
    "report/figures/shortening.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"between_parts"}),
    ),
    "report/legend.py": ("flags of a processor, types", frozenset({"includes", "machine_line"})),
    "report/prometheus.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"prometheus_name"}),
    ),
    "runtimes/config.py": ("what users write", frozenset({"_read"})),
    "runtimes/environments.py": (
        "what users write",
        frozenset({"Environments._sweep", "Environments.all", "failure_without", "pythons_to_try"}),
    ),
    "runtimes/package_sources.py": ("what pip wrote beside a package", frozenset({"_source"})),
    "runtimes/releases.py": (
        "what users write, output of pip",
        frozenset({"expand_range", "released"}),
    ),
    "runtimes/specs.py": (
        "what users write",
        frozenset({"_is_ort", "_pinned", "parse_requirements", "split_requirements"}),
    ),
    "schema/bounds.py": (
        "names that the product declares for identification: ids, metrics, fields",
        frozenset({"bound_of"}),
    ),
    "schema/document.py": ("messages of msgspec", frozenset({"_parse_object"})),
    "schema/json_schema.py": (
        "docstrings of the types of the document",
        frozenset({"describe_type"}),
    ),
    "store/accepted.py": (
        "what users write",
        frozenset({"_digest", "_lines", "_with", "parse_day", "parse_share"}),
    ),
    "store/baseline.py": ("names of files", frozenset({"_in_folder", "find_baseline"})),
    "worker/accuracy.py": ("types as ONNX Runtime spells them", frozenset({"fitting"})),
    "worker/binding.py": ("types as ONNX Runtime spells them", frozenset({"bind"})),
    "worker/draw.py": ("types as ONNX Runtime spells them", frozenset({"_number"})),
    "worker/generation/genai_model.py": (
        "messages of onnxruntime-genai",
        frozenset({"GenaiModel._made"}),
    ),
    "worker/interface.py": ("types as ONNX Runtime spells them", frozenset({"_info"})),
    "worker/main.py": (
        "names of modules, files and the system",
        frozenset({"_is_native", "_wake_when_orphaned"}),
    ),
    "worker/page_cache.py": ("the name of the system", frozenset({"resident"})),
    "worker/reference.py": (
        "names of files, types",
        frozenset({"recorded_outputs", "reference_label"}),
    ),
    "passes/task/worker/scoring.py": ("types as ONNX Runtime spells them", frozenset({"score"})),
}
