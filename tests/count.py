#!/usr/bin/env python3
"""The lines of production code, by crate and in all: the size that the house is held to.

A line counts if it holds code, of a file in `src/` or `crates/*/src`. Blank lines do not count, nor comments of any
kind, nor what only tests compile: an item under `#[cfg(test)]`, the file of such a module, `tests.rs`, `sample.rs`,
folders `tests/`. Attributes, closing brackets and lines of a string count.

    tests/count.py [ROOT] [--files]     --files: a line for each file as well, the longest first
"""
import re
import sys
from collections import Counter
from pathlib import Path

# What may hide a bracket, a slash or a line: strings (raw ones too), characters and comments.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]+?|[^'\\\n])')""",
    re.DOTALL | re.VERBOSE,
)
TESTED = re.compile(r"#\[cfg\((?:test|all\(\s*test\b[^\]]*)\)\]")
MODULE = re.compile(r"\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z ]+\))?\s+)?mod\s+(\w+)\s*;")


def bare(source):
    """The source without comments, and with `x` for each character of a string: as long as before, line by line."""
    def kept(token):
        filler = " " if token["comment"] else "x"
        return re.sub(r"\S", filler, token[0])
    return TOKEN.sub(kept, source)


def end_of_item(code, at):
    """Where the item that begins here ends: its last bracket or semicolon, or the comma of a field."""
    depth = 0
    for i in range(at, len(code)):
        character = code[i]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return i
            depth -= 1
            if depth == 0 and character == "}":
                return i + 1
        elif character in ";," and depth == 0:
            return i + 1
    return len(code)


def production(code):
    """The code without what only tests compile, and the names of modules of tests that are files of their own."""
    kept, modules, at = [], [], 0
    for attribute in TESTED.finditer(code):
        if attribute.start() < at:
            continue
        kept.append(code[at:attribute.start()])
        if module := MODULE.match(code, attribute.end()):
            modules.append(module[1])
        at = end_of_item(code, attribute.end())
    kept.append(code[at:])
    return "".join(kept), modules


def count(root):
    """Lines of each file of production code, from `root`."""
    texts, tested = {}, set()
    for tree in [root / "src", *sorted((root / "crates").glob("*/src"))]:
        for path in sorted(tree.rglob("*.rs")):
            text, modules = production(bare(path.read_text(encoding="utf-8")))
            texts[path] = text
            folder = path.parent if path.stem in ("lib", "main", "mod") else path.with_suffix("")
            tested.update(folder / module for module in modules)
    lines = {}
    for path, text in texts.items():
        of_tests = path.name in ("tests.rs", "sample.rs") or "tests" in path.relative_to(root).parts
        places = [path.with_suffix(""), *path.parents]
        if not of_tests and not tested.intersection(places):
            lines[path.relative_to(root)] = sum(1 for line in text.splitlines() if line.strip())
    return lines


def main():
    words = [word for word in sys.argv[1:] if word != "--files"]
    root = Path(words[0]) if words else Path(__file__).resolve().parent.parent
    files = count(root)
    if "--files" in sys.argv:
        for path, lines in sorted(files.items(), key=lambda row: -row[1]):
            print(f"{lines:7} {path}")
    crates = Counter()
    for path, lines in files.items():
        crates[path.parts[1] if path.parts[0] == "crates" else "durawarp"] += lines
    for name, lines in crates.most_common():
        print(f"{lines:7} {name}")
    print(f"{sum(crates.values()):7} in all")


if __name__ == "__main__":
    main()
