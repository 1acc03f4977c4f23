"""Generic mutation testing: where a mutant can be made (`sites`), modules that carry mutants (`carriers`), and tests run
against them in forked processes (`trials`). `bench.mutants` is the command.
"""
