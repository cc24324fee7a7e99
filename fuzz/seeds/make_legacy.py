"""Writes the seeds in `legacy/` beside this script: what `torch.save` wrote before its zip archive, small and unlike one
another, so that a fuzzer has each kind of record to begin with. Made with torch 2.9."""
import collections
import os

import torch

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "legacy"))


def save(name, value, **options):
    torch.save(value, name, _use_new_zipfile_serialization=False, **options)


x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
save("one", {"w": x})
save("protocol-3", {"w": x}, pickle_protocol=3)
save("protocol-4", {"w": x}, pickle_protocol=4)
save("bare-tensor", x)
save("list", [x, {"w": x}, (x, 1, None, True, "s", b"b", 2.5)])
save("ordered", collections.OrderedDict(a=x, b=x.double()))
for dtype in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "float8_e4m3fn"):
    save(dtype, {"w": torch.zeros(2, dtype=getattr(torch, dtype))})
# Several storages, and several tensors on one.
save("storages", {str(i): torch.full((i + 1,), float(i)) for i in range(5)})
save("views", {"all": x, "row": x[1], "column": x[:, 1], "transposed": x.t(), "tied": x, "reshaped": x.reshape(3, 2)})
save("strides", {"step": torch.arange(12.0)[::3], "block": torch.arange(16.0).reshape(4, 4)[1:3, 1:3]})
save("shapes", {"scalar": torch.tensor(1.0), "empty": torch.zeros(0, 3), "axes": torch.zeros(1, 1, 2, 1), "none": torch.zeros(3, 0)})
save("broadcast", {"w": torch.tensor([1.0]).expand(1000)})
save("parameter", {"p": torch.nn.Parameter(x), "buffer": torch.nn.parameter.Buffer(x)})
save("run", {"epoch": 3, "model": {"w": x}, "optimizer": {"state": {0: {"m": x}}, "param_groups": [{"lr": 0.1, "params": [0]}]}})
save("deep", {"a": {"b": {"c": {"d": {"w": x}}}}})
