"""Checks that a report of `wqk demo` is whole: usage check_report.py FOLDER"""
import csv, json, pathlib, sys
import xml.etree.ElementTree as xml

folder = pathlib.Path(sys.argv[1])
page = (folder / "index.html").read_text(encoding="utf-8")
assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>"), "index.html is cut off"
assert page.count("<svg") >= 5, "figures are missing from index.html"
assert "http://" not in page.replace("http://www.w3.org", "") and "<script" not in page, "index.html is not self-contained"
for name in ("loss", "symmetry", "directionality", "symmetry_layers", "directionality_layers"):
    root = xml.parse(folder / f"{name}.svg").getroot()
    assert root.tag.endswith("svg") and len(list(root.iter())) > 10, f"{name}.svg is empty"
rows = {name: list(csv.DictReader(open(folder / f"{name}.csv"))) for name in ("steps", "held_out", "scores", "heads")}
arms = {"encoder", "decoder"}
for name, table in rows.items():
    assert {row["arm"] for row in table} == arms, f"{name}.csv lacks an arm"
for row in rows["scores"]:
    assert -1 <= float(row["symmetry"]) <= 1 and -1 <= float(row["directionality_excess"]) <= 1, row
losses = [float(row["loss"]) for row in rows["steps"] if row["arm"] == "decoder"]
assert losses[-1] < losses[0] - 0.3, "the decoder did not learn"
assert json.load(open(folder / "settings.json"))["program"].startswith("wqk ")
print("the report is whole:", {name: len(table) for name, table in rows.items()})
