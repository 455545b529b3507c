"""Writes the large answers that the benchmarks of the response cache read.

    python3 tests/bench/large_answers.py DIR

`scene.json` is a scene of a game editor, some 10 MB: objects in objects, names in two scripts.
`log.json` is a console of some 10 MB: many small entries with a stack trace each. The same bytes
come out each time.
"""

import json
import pathlib
import random
import sys

SIZE = 10_000_000
WORDS = "Enemy Player Camera Light Door Wall Floor Spawn Trigger Canvas Button Panel Tree Rock Water".split()
NAMES = "敵 主人公 カメラ 照明 扉 壁 床 出現点 木 岩 水面 🚪 🌲".split()
COMPONENTS = "Transform MeshRenderer MeshFilter BoxCollider Rigidbody AudioSource Animator Light CanvasRenderer".split()
MESSAGES = "NullReferenceException: Object reference not set|Shader compiled|Asset imported|Missing script|Frame dropped".split("|")


def vector(rng):
    return {axis: round(rng.uniform(-500, 500), 3) for axis in "xyz"}


def game_object(rng, path, depth):
    name = f"{rng.choice(WORDS)}_{rng.choice(NAMES)}_{rng.randrange(10_000)}"
    path = f"{path}/{name}"
    children = rng.randrange(2, 7) if depth < 4 else 0
    return {
        "name": name,
        "instanceID": rng.randrange(-200_000, 200_000),
        "path": path,
        "tag": rng.choice(["Untagged", "Enemy", "Respawn"]),
        "layer": rng.randrange(32),
        "activeSelf": rng.random() < 0.9,
        "isStatic": rng.random() < 0.3,
        "transform": {"position": vector(rng), "rotation": vector(rng), "scale": vector(rng)},
        "componentNames": rng.sample(COMPONENTS, rng.randrange(1, 6)),
        "children": [game_object(rng, path, depth + 1) for _ in range(children)],
    }


def entry(rng, number):
    frames = "\n".join(
        f"  at Game.{rng.choice(WORDS)}.{rng.choice(['Update', 'Awake', 'OnHit'])} () [0x{rng.randrange(1 << 16):05x}] in Assets/Scripts/{rng.choice(WORDS)}.cs:{rng.randrange(900)}"
        for _ in range(rng.randrange(2, 6))
    )
    return {
        "index": number,
        "type": rng.choice(["Log", "Log", "Warning", "Error", "Exception"]),
        "message": f"{rng.choice(MESSAGES)} in \"{rng.choice(NAMES)}\" ({rng.randrange(1_000_000)})",
        "stackTrace": frames,
        "timestamp": f"2026-11-28T12:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}Z",
    }


def filled(make):
    items, size = [], 0
    while size < SIZE:
        item = make(len(items))
        size += len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode()) + 1
        items.append(item)
    return items


def main(folder):
    rng = random.Random(20261128)
    scene = {"success": True, "message": "hierarchy of 1 scene", "warnings": [], "hierarchy": filled(lambda _: game_object(rng, "", 0))}
    log = {"success": True, "entries": filled(lambda number: entry(rng, number)), "truncated": False}
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in (("scene", scene), ("log", log)):
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
