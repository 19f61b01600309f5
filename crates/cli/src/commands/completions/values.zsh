# Pipelines, causes and rounds, as they are now.
_redrive_pipelines() {
    local -a found
    found=("${(@f)$(_call_program pipelines redrive complete pipelines 2>/dev/null)}")
    compadd -- "${found[@]}"
}

_redrive_rounds() {
    local -a found
    found=("${(@f)$(_call_program rounds redrive complete rounds 2>/dev/null)}")
    compadd -- "${found[@]}"
}

_redrive_causes() {
    local -a found
    found=("${(@f)$(_call_program causes redrive complete causes 2>/dev/null)}")
    compadd -- "${found[@]%%$'\t'*}"
}
