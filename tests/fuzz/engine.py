"""One target under atheris, in this process, which libFuzzer ends: `python -m tests.fuzz.engine TARGET [OPTION…]`."""

import sys

import atheris


def main():
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["dragoman"], exclude=["dragoman.protocol.generated"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]

    def judge(data):
        provider = atheris.FuzzedDataProvider(data)
        # The last byte decides; seeds are text, and end in a newline, which is even.
        if provider.ConsumeBool():
            target.check_made(provider)
        else:
            target.check(data)

    atheris.Setup([sys.argv[0], *options], judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
