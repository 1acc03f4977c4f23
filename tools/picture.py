"""The pictures of the documentation: `python -m tools.picture [FOLDER]` runs the demo and draws its screen as SVG.

It takes as long as a day of the demo does. Each picture is of a moment that it waits for, not of a time.
"""

import asyncio
import io
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Final

from textual.pilot import Pilot

from growth.demo import scene
from growth.demo.process import Demo
from growth.demo.sellers import SELLERS
from growth.operator import logs
from growth.ports import SystemClock, SystemRandom, ThreadCompute
from growth.providers.catalogues import builtin
from growth.top.following import Following
from growth.top.view import Top

FOLDER: Final = pathlib.Path("docs/pictures")
# So that no reason and no sum is cut off.
SIZE: Final = (164, 26)
SEED: Final = 1


def moments(app: Top, said: list[str]) -> list[tuple[str, Callable[[], bool]]]:
    """The pictures' names, each with what it waits for."""

    def waiting() -> bool:
        sums = app.seen.sums if app.seen is not None else None
        return sums is not None and sums.coming > 0 and sums.waiting > 5 and len(app.thoughts.kept) >= sums.coming

    def rush() -> bool:
        sums = app.seen.sums if app.seen is not None else None
        begun = next((at for at, line in enumerate(said) if "rush hour" in line), len(said))
        bought = any("growth bought" in line for line in said[begun:])
        return bought and sums is not None and not sums.waiting and not sums.coming

    def cheaper() -> bool:
        return app.seen is not None and any("replaces" in row.text for row in app.seen.decisions)

    return [("waiting", waiting), ("rush-hour", rush), ("consolidating", cheaper)]


async def main(folder: pathlib.Path) -> None:
    clock, compute = SystemClock(), ThreadCompute()
    logs.configure(clock=clock, stream=io.StringIO())
    said: list[str] = []
    demo = Demo(clock=clock, compute=compute, seed=SEED, write=said.append)
    await demo.begin()
    following = Following(
        demo.cluster.admin,
        clock=clock,
        random=SystemRandom(),
        choose=lambda _: builtin(SELLERS["kwok"].cloud, dedicated=True),
    )
    invitation = f"KUBECONFIG=… kubectl scale deployment/{scene.YOURS} --replicas 20"
    app = Top(following, clock=clock, compute=compute, title="growth demo", said=lambda: (invitation, *said[-1:]))
    async with app.run_test(size=SIZE) as pilot:
        task = asyncio.ensure_future(demo.run())
        for name, there in moments(app, said):
            await _seen(app, pilot, there)
            _keep(app.export_screenshot(title="growth demo"), folder / f"{name}.svg")
        task.cancel()
    compute.close()


async def _seen(app: Top, pilot: Pilot[None], there: Callable[[], bool]) -> None:
    while True:
        await asyncio.sleep(0.2)
        if app.seen is not None:
            app.look()
        await pilot.pause()
        if there():
            return


def _keep(svg: str, file: pathlib.Path) -> None:
    """Without the fonts that it would fetch from elsewhere: whoever looks has a fixed-width one."""
    own = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL).replace("Fira Code", "monospace")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(line.rstrip() for line in own.splitlines()) + "\n", encoding="utf-8")
    print(f"picture: {file}")


if __name__ == "__main__":
    asyncio.run(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
