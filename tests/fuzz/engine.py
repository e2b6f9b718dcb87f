"""`python -m tests.fuzz.engine TARGET [OPTION…]`: one target under atheris. libFuzzer ends this process."""

import sys

import atheris


def main():
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["dragoman"], exclude=["dragoman.protocol.generated"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[name]

    def judge(data):
        provider = atheris.FuzzedDataProvider(data)
        # The last byte selects the check. Seeds are text and end with a newline, which is even.
        if provider.ConsumeBool():
            target.check_made(provider)
        else:
            target.check(data)

    atheris.Setup([sys.argv[0], *options], judge)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
