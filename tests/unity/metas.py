"""The `.meta` files of the Unity package: every file and folder has one, and no GUID comes twice.

    python3 tests/unity/metas.py          writes what is missing, takes away what is left over
    python3 tests/unity/metas.py check    only says what is wrong

A GUID is made of the package's name and the path in it, so that it stays the same for every user and every version.
"""
from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "crates" / "unity" / "unity-package"

IMPORTERS = {
    ".cs": "MonoImporter:\n  externalObjects: {}\n  serializedVersion: 2\n  defaultReferences: []\n  executionOrder: 0\n  icon: {instanceID: 0}\n",
    ".asmdef": "AssemblyDefinitionImporter:\n  externalObjects: {}\n",
    "package.json": "PackageManifestImporter:\n  externalObjects: {}\n",
    "folder": "folderAsset: yes\nDefaultImporter:\n  externalObjects: {}\n",
    "other": "TextScriptImporter:\n  externalObjects: {}\n",
}
TAIL = "  userData: \n  assetBundleName: \n  assetBundleVariant: \n"


def guid(package: str, path: str) -> str:
    return hashlib.sha256(f"{package}/{path}".encode()).hexdigest()[:32]


def wanted(root: Path = PACKAGE) -> dict[Path, str]:
    """The text of every `.meta` file that belongs into the package."""
    package = json.loads((root / "package.json").read_text())["name"]
    files = {}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        # Unity imports neither what begins with a dot nor what ends with a tilde.
        if path.suffix == ".meta" or any(p.startswith(".") or p.endswith("~") for p in inside.parts):
            continue
        kind = "folder" if path.is_dir() else path.name if path.name in IMPORTERS else path.suffix if path.suffix in IMPORTERS else "other"
        text = f"fileFormatVersion: 2\nguid: {guid(package, inside.as_posix())}\n{IMPORTERS[kind]}{TAIL}"
        files[path.with_name(path.name + ".meta")] = text
    return files


def faults(root: Path = PACKAGE) -> list[str]:
    files = wanted(root)
    found = []
    for path, text in files.items():
        if not path.exists():
            found.append(f"{path.relative_to(root)} is missing; run metas.py")
        elif path.read_text() != text:
            found.append(f"{path.relative_to(root)} is not as metas.py writes it")
    found += [f"{p.relative_to(root)} belongs to nothing" for p in sorted(root.rglob("*.meta")) if p not in files]
    guids = [t.split("guid: ")[1][:32] for t in files.values()]
    found += [f"the GUID {g} comes {guids.count(g)} times" for g in sorted(set(guids)) if guids.count(g) > 1]
    return found


def write(root: Path = PACKAGE) -> None:
    files = wanted(root)
    for path in root.rglob("*.meta"):
        if path not in files:
            path.unlink()
    for path, text in files.items():
        path.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        said = faults()
        print("\n".join(said) or "metas: nothing to say")
        sys.exit(1 if said else 0)
    write()
