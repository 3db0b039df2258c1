"""Habits that make text hard to read, counted: ``python tests/oracles/prose.py [PATH ...]``.

Paths are pages or modules; without one, all. ``--long`` lists long sentences and paragraphs too.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HABITS = {
    "begins with 'Of'": r"(?:^|[.;:!?]\s+|\|\s*)Of (?!course)",
    "'but for': write 'except'": r"\bbut (?:for|of|those|by|in|with)\b",
    "'what is ...' as a noun": (
        r"\b[Ww]hat (?:is|was|it|they|a|one|follows|has|lies|leaves|can|may)\b"
    ),
    "'who is ...' as a subject": (
        r"\b[Ww]ho(?:ever)? (?:is|has|does|runs|reads|knows|wants|looks|calls)\b"
    ),
    "'is to be': write 'must be'": r"\b(?:is|are) to be\b",
    "'so many', 'as many'": r"\b(?:so|as|that) many\b",
    "'a row': write 'per row'": (
        r"\b(?:one|two|words|bytes|times|numbers?|rows?|row|charge|sums?|steps?|cuts|lines?|seconds?"
        r"|bar) an? (?:row|class|cell|column|fit|patient|table|record|unit|line|layer|interaction"
        r"|connection|charge|person|tenth)\b"
    ),
    "an old word": r"\b(?:nothing else|as ever|hardly|[Bb]esides?|[Bb]eforehand|foretells?)\b",
}
# The glossary says which term is used instead.
RETIRED = {
    "batch": r"\b[Ll]ots?\b",
    "composition": r"\b[Cc]urrenc(?:y|ies)\b",
    "independently with probability": r"\b[Cc]oins?\b",
    "reserved budget": r"\b[Ee]scrows?\b",
    "patient, unit or record": r"\b[Pp]ersons?\b",
    "they": r"\b(?:[Hh]e|[Ss]he|[Hh]is|[Hh]er|[Hh]ers|[Hh]im)\b",
    "adjacency": r"(?<![Aa]djacency\s)\b[Rr]elations?\b",
    "clipping norm": r"\b(?:clip norm|clipping bound|clip bound)s?\b",
    "assumed, not checked": r"\b(?:taken|takes|take) at (?:your|its|their) word\b",
    "exact": r"\bun-?noised\b",
    "somebody who": r"\b[Ww]hoever\b",
    "data analyst": r"\b[Ss]tewards?\b",
}
LONGEST_LINE, LONGEST_SENTENCE, LONGEST_PARAGRAPH = 120, 25, 4


def without_code(text):
    """Blank code, formulas and addresses, and keep lines where they are."""

    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])

    for pattern in (
        r"(```+).*?\1",
        r"\$\$.*?\$\$",
        r"^ *>>>.*?(?=\n\s*\n|\Z)",
        r"^\([\w.-]+\)=$",
        r"^ *[\w*]+(?:, \w+)* : ",  # names of parameters
        r"<!--.*?-->",
    ):
        text = re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", lambda found: "]" + blank(found)[1:], text)
    return re.sub(r"``?[^`]+``?|\$[^$]*\$", lambda found: "x" + blank(found)[1:], text)


def pages():
    """Return all pages that users read."""
    return [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/proofs").glob("*.md")),
            ROOT / "README.md", ROOT / "CHANGELOG.md"]  # fmt: skip


def modules():
    """Return all modules of the package, and the scripts of the gallery."""
    return [*sorted((ROOT / "skdp").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]


def texts(path):
    """Yield kind, line and text of all that readers see in a page or a module."""
    source = path.read_text()
    if path.suffix == ".md":
        yield ("proofs" if path.parent.name == "proofs" else "docs"), 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            doc = ast.get_docstring(node)
            if doc:
                yield "docstrings", node.body[0].lineno, doc
        warned = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn")
        if warned or (isinstance(node, ast.Raise) and node.exc is not None):
            parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            said = " ".join(part for part in parts if isinstance(part, str))
            if len(said.split()) > 3:
                yield "messages", node.lineno, said


def sentences(text):
    """Yield line and text of each sentence; a row of a table has its cells, a list its items."""
    text = re.sub(r"^ *(?:[-*]|\d+\.) +", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(#.*|\S.* : .*|[-=~]{3,})$", r"\n\n", text, flags=re.MULTILINE)
    for piece in re.split(r"(?<=[.!?])\s+|\n\s*\n|\|", text):
        yield re.sub(r"\s+", " ", piece).strip()


def paragraphs(text):
    """Yield first line number and lines of each paragraph or item of a page."""
    start, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        item = re.match(r" *(?:[-*]|\d+\.) +\S", line)
        if not line.strip() or item or line.lstrip().startswith(("|", "#", ":::")):
            if lines:
                yield start, lines
            start, lines = number, []
        if line.strip() and not line.lstrip().startswith(("|", "#", ":::")):
            lines.append(line)
            start = start if len(lines) > 1 else number


def findings(path):
    """Yield kind, line, rule and excerpt of each fault."""
    for kind, first, text in texts(path):
        bare = without_code(text)
        lines = text.splitlines()
        for rule, pattern in (HABITS | {f"retired: {k}": v for k, v in RETIRED.items()}).items():
            for found in re.finditer(pattern, bare, re.MULTILINE):
                number = bare.count("\n", 0, found.end())
                ends = re.split(
                    r"(?<=[.!?:|])\s", re.sub(r"\s+", " ", bare[found.start() :]), maxsplit=1
                )
                if not ends[0].rstrip("*").endswith("?"):  # a question may begin with "What is"
                    yield kind, first + number, rule, lines[number].strip()[:100]
        long = [piece for piece in sentences(bare) if len(piece.split()) > LONGEST_SENTENCE]
        for piece in long:
            rule = "very long sentence" if len(piece.split()) > 40 else "long sentence"
            yield kind, first, rule, f"({len(piece.split())} words) {piece[:90]}"
        if path.suffix == ".md":
            for number, line in enumerate(bare.splitlines(), 1):
                if len(lines[number - 1]) > LONGEST_LINE and line.strip() and line[0] != "|":
                    yield kind, number, "long line", line[:60]
            for number, group in paragraphs(bare):
                if len(group) > LONGEST_PARAGRAPH:
                    yield kind, number, "long paragraph", f"({len(group)} lines) {group[0][:80]}"


def main(arguments):
    """Print the findings, and counts of words."""
    every = "--long" in arguments
    paths = [Path(path).resolve() for path in arguments if path != "--long"]
    files = [f for path in paths for f in ([path] if path.is_file() else sorted(
        [*path.rglob("*.md"), *path.rglob("*.py")]))] or [*pages(), *modules()]  # fmt: skip
    counts = {}
    for path in files:
        for kind, number, rule, excerpt in findings(path):
            counts[kind, rule] = counts.get((kind, rule), 0) + 1
            if every or not rule.startswith("long") or rule == "long line":
                print(f"{path.relative_to(ROOT)}:{number}: {rule}: {excerpt}")
        for kind, _, text in texts(path):
            counts[kind, "words"] = counts.get((kind, "words"), 0) + len(text.split())
    for (kind, rule), count in sorted(counts.items()):
        print(f"{kind:10} {count:7} {rule}")


if __name__ == "__main__":
    main(sys.argv[1:])
