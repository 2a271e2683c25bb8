"""IREE's tuning specs: sizes and configurations are read, unfixed sizes are noted, an error names its line."""

from __future__ import annotations

import random

import pytest

from tunesmith.formats.winners.iree_specs import UNKNOWN_DEVICE, read_spec
from tunesmith.records import UserError

HEAD = """\
// A spec for gfx942.
module @spec attributes {iree_codegen.tuning_spec_with_default_entrypoint, transform.with_named_sequence} {
  transform.named_sequence @apply_op_config(%op: !transform.any_op {transform.readonly}, %c: !transform.any_param) {
    transform.annotate %op "compilation_info" = %c : !transform.any_op, !transform.any_param
    transform.yield
  }
"""
MATCHER = """\
  transform.named_sequence @match_product(%op: !transform.any_op) -> (!transform.any_op, !transform.any_param) {
    %batch, %m, %n, %k = transform.iree.match.contraction %op, lhs_type = f16, rhs_type = f16, output_type = f32,
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
                       affine_map<(d0, d1, d2) -> (d0, d1)>] : !transform.any_op -> !transform.param<i64>
    transform.iree.match.dims_equal %batch, [] : !transform.param<i64>
    transform.iree.match.dims_equal %m, [1920] : !transform.param<i64>
    transform.iree.match.dims_equal %n, [10240] : !transform.param<i64>
    transform.iree.match.dims_equal %k, [1280] : !transform.param<i64>
    %config = transform.param.constant #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{
      mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>, reduction = [0, 0, 32], workgroup = [128, 64, 0]}>,
      translation_info = <pipeline = LLVMGPUTileAndFuse workgroup_size = [256, 1, 1] subgroup_size = 64,
      {llvm_func_attrs = {"amdgpu-waves-per-eu" = "2"}}>> -> !transform.any_param
    transform.yield %op, %config : !transform.any_op, !transform.any_param
  }
"""
CONVOLUTION = """\
  transform.named_sequence @match_conv(%op: !transform.any_op) -> (!transform.any_op, !transform.any_param) {
    %batch, %image, %out, %filter, %in, %depth, %strides, %dilations = transform.iree.match.convolution %op,
      lhs_type = bf16, rhs_type = bf16, output_type = f32, indexing_maps = [
        affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>,
        affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>,
        affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>] : !transform.any_op -> !transform.param<i64>
    transform.iree.match.dims_equal %batch, [16] : !transform.param<i64>
    transform.iree.match.dims_equal %image, [48, 32] : !transform.param<i64>
    transform.iree.match.dims_equal %out, [96] : !transform.param<i64>
    transform.iree.match.dims_equal %filter, [3, 3] : !transform.param<i64>
    transform.iree.match.dims_equal %in, [24] : !transform.param<i64>
    transform.iree.match.dims_equal %depth, [] : !transform.param<i64>
    %config = transform.param.constant #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<
      {reduction = [0, 0, 0, 0, 3], workgroup = [1, 4, 16, 32, 0]}>> -> !transform.any_param
    transform.yield %op, %config : !transform.any_op, !transform.any_param
  }
"""
GENERIC = """\
  transform.named_sequence @match_generic(%op: !transform.any_op) -> (!transform.any_op, !transform.any_param) {
    %ins, %outs = transform.iree.match.cast_compatible_dag_from_root %op {
    ^bb0(%a: tensor<4x34x30x6x8xbf16>, %b: tensor<6x16x3x5x8xbf16>, %c: tensor<4x16x13x6x16xf32>):
      %1 = linalg.generic {indexing_maps = [
        affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 2 + d5, d2 * 2 + d6, d3, d7)>,
        affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d4, d5, d6, d7)>,
        affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>]}
        ins(%a, %b : tensor<4x34x30x6x8xbf16>, tensor<6x16x3x5x8xbf16>) outs(%c : tensor<4x16x13x6x16xf32>) {
      ^bb0(%in: bf16, %in_0: bf16, %out: f32):
        linalg.yield %out : f32
      } -> tensor<4x16x13x6x16xf32>
    } : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    %0 = transform.param.constant #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{
      reduction = [0, 0, 0, 0, 0, 2], workgroup = [2, 4, 1, 1, 16, 0]}>> -> !transform.any_param
    transform.yield %op, %0 : !transform.any_op, !transform.any_param
  }
"""
TAIL = """\
  transform.named_sequence @__kernel_config(%op: !transform.any_op) attributes {iree_codegen.tuning_spec_entrypoint} {
    %done = transform.foreach_match in %op @match_product -> @apply_op_config : (!transform.any_op) -> !transform.any_op
    transform.yield %done : !transform.any_op
  }
}
"""
SPEC = HEAD + MATCHER + CONVOLUTION + TAIL
EVERY_FORM = HEAD + MATCHER + CONVOLUTION + GENERIC + TAIL


def spec(folder, text, name="spec.mlir"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_product_and_its_configuration_are_read(tmp_path):
    reading = read_spec(spec(tmp_path, SPEC))
    shape = reading.shapes[0]
    assert (shape.m, shape.n, shape.k, shape.batch) == (1920, 10240, 1280, 1)
    assert (shape.data_type, shape.result_type, shape.device, shape.family) == ("f16", "f32", "gfx942", "contraction")
    assert dict(shape.configuration) == {
        "MacroTile": (128, 64), "Reduction": (32,), "Instruction": "MFMA_F32_16x16x16_F16", "WorkGroup": (256, 1, 1),
    }  # fmt: skip
    assert shape.source.endswith("spec.mlir:7")
    assert reading.notes == ()


def test_a_convolution_is_the_product_that_it_is_computed_as(tmp_path):
    shape = read_spec(spec(tmp_path, SPEC)).shapes[1]
    assert (shape.m, shape.n, shape.k, shape.batch) == (16 * 48 * 32, 96, 3 * 3 * 24, 1)
    assert shape.configuration["MacroTile"] == (1 * 4 * 16, 32)
    assert shape.family == "convolution"


def test_an_operation_that_is_spelled_out_has_the_sizes_of_its_tensors(tmp_path):
    """A convolution of stride 2 with 6 groups: K is the loops that D lacks, the batch is the loops that all have."""
    (shape,) = read_spec(spec(tmp_path, HEAD + GENERIC + TAIL)).shapes
    assert (shape.m, shape.n, shape.k, shape.batch) == (4 * 16 * 13, 16, 3 * 5 * 8, 6)
    assert (shape.data_type, shape.result_type) == ("bf16", "f32")
    assert shape.configuration["MacroTile"] == (2 * 4 * 1, 16)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("outs(%c : tensor<4x16x13", "outs(%c : tensor<?x16x13", "a tensor of ?x16x13x6x16xf32 has no fixed shape"),
        ("(d3, d4, d5, d6, d7)>", "(d3, d4, d5, d6 * 2, d7)>", "the size of loop d6 is not fixed"),
        ("(d3, d4, d5, d6, d7)>", "(d3, d4, d5 floordiv 2, d6, d7)>", "the size of loop d5 is not fixed"),
        ("(d3, d4, d5, d6, d7)>", "(d3, d4, d5, d6)>", "a map has another rank than its tensor"),
        ("linalg.yield", "linalg.generic", "it matches 2 operations together"),
    ],
)
def test_an_operation_without_fixed_sizes_is_left_out(tmp_path, old, new, message):
    assert old in GENERIC
    reading = read_spec(spec(tmp_path, HEAD + GENERIC.replace(old, new) + TAIL))
    assert reading.shapes == ()
    assert message in reading.notes[0]


def test_the_maps_say_which_loop_a_tile_belongs_to(tmp_path):
    """D's columns may be its first loop."""
    turned = MATCHER.replace(
        "-> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>", "-> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>"
    )
    assert turned != MATCHER
    (shape,) = read_spec(spec(tmp_path, HEAD + turned + TAIL)).shapes
    assert shape.configuration["MacroTile"] == (64, 128)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dims_equal %m, [1920]", "dim_is_multiple_of %m[0], 128", "the sizes of %m are not fixed"),
        (
            "transform.iree.match.contraction",
            "transform.iree.match.attention",
            "no contraction, convolution or linalg.generic",
        ),
        ("lhs_type = f16", "lhs_type = f4E2M1FN", "a data type is f4E2M1FN"),
        ("workgroup = [128, 64, 0]", "workgroup = [128, 0, 0]", "no tile along M or N"),
        (", workgroup = [128, 64, 0]", "", "no workgroup"),
    ],
)
def test_what_is_not_one_fixed_size_is_named_and_left_out(tmp_path, old, new, message):
    assert old in MATCHER
    reading = read_spec(spec(tmp_path, HEAD + MATCHER.replace(old, new) + CONVOLUTION + TAIL))
    assert [shape.family for shape in reading.shapes] == ["convolution"]
    (note,) = reading.notes
    assert "spec.mlir:7: @match_product: " in note
    assert message in note


def test_a_batch_must_be_fixed_where_there_is_one(tmp_path):
    unchecked = MATCHER.replace("    transform.iree.match.dims_equal %batch, [] : !transform.param<i64>\n", "")
    assert read_spec(spec(tmp_path, HEAD + unchecked + TAIL)).shapes[0].batch == 1
    batched = unchecked
    for old, new in (("(d0, d1, d2) ->", "(d0, d1, d2, d3) ->"), ("(d0, d2)>", "(d3, d0, d2)>"),
                     ("(d1, d2)>", "(d3, d1, d2)>"), ("(d0, d1)>", "(d3, d0, d1)>")):  # fmt: skip
        batched = batched.replace(old, new)
    reading = read_spec(spec(tmp_path, HEAD + batched + TAIL))
    assert "the sizes of %batch are not fixed" in reading.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPEC[: SPEC.index("LLVMGPUTileAndFuse")], "spec.mlir:17: the text ends before this < is closed"),
        (SPEC.replace("workgroup = [128, 64, 0]}>", "workgroup = [128, 64, 0}>"), "spec.mlir:16: } meets [ of line 16"),
        (SPEC + "}\n", "} closes nothing"),
        (
            "func.func @main() {\n  return\n}\n",
            "spec.mlir:1: no transform.named_sequence after func.func: another dialect",
        ),
        (SPEC.replace("%m, [1920]", "%m, [1920.5]"), "spec.mlir:12: dims_equal has no list of whole numbers"),
        (SPEC.replace("[1920]", "[0]"), "a dimension of size 0"),
        (SPEC.replace("@match_product(", "~match_product("), "spec.mlir:7: '~' is no MLIR"),
        ("", "no transform.named_sequence after nothing"),
    ],
)
def test_what_is_broken_is_told_with_its_line(tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        read_spec(spec(tmp_path, text))
    assert message in str(caught.value)


def test_the_files_name_knows_the_device_best(tmp_path):
    assert read_spec(spec(tmp_path, SPEC, "tuned_gfx950.mlir")).shapes[0].device == "gfx950"
    assert read_spec(spec(tmp_path, SPEC.replace("gfx942", "a chip"))).shapes[0].device == UNKNOWN_DEVICE


def test_whatever_stands_in_a_spec_only_our_error_comes_out(tmp_path):
    chance = random.Random("specs")
    read_and_refused = [0, 0]
    for number in range(400):
        start = chance.randrange(len(EVERY_FORM))
        part = "" if number % 2 else chance.choice([*"<>[](){}=,%@#\"'-é\x00", "9" * 40, "affine_map<", " = "])
        text = (
            EVERY_FORM[:start] + part + EVERY_FORM[start + chance.randrange(30) :] if number % 5 else EVERY_FORM[:start]
        )
        try:
            read_spec(spec(tmp_path, text))
            read_and_refused[0] += 1
        except UserError:
            read_and_refused[1] += 1
    assert min(read_and_refused) > 50
