"""Reading YAML that a person wrote: every problem with its line, no code run, no depth that hurts."""
