
# Pipelines, causes and rounds, as they are now. Names and ids have nothing in them that a shell would obey.
_redrive_values() {
    local cur="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" known=""
    case "$previous" in
        --pipeline|-p) known=pipelines ;;
        --cause) known=causes ;;
        --round) known=rounds ;;
    esac
    if [[ -z "$known" && "${COMP_WORDS[1]}" == cause && "$cur" != -* ]]; then
        case "${COMP_WORDS[2]}" in
            show|assign|note|mute|unmute|resolve|reopen|split) [[ "$COMP_CWORD" -eq 3 ]] && known=causes ;;
            merge) [[ "$COMP_CWORD" -eq 3 || "$COMP_CWORD" -eq 4 ]] && known=causes ;;
        esac
    fi
    if [[ -z "$known" && "${COMP_WORDS[1]}" == pipeline && "$COMP_CWORD" -eq 3 && "$cur" != -* ]]; then
        case "${COMP_WORDS[2]}" in
            show|pause|resume) known=pipelines ;;
        esac
    fi
    if [[ -n "$known" ]]; then
        COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" complete "$known" 2>/dev/null | cut -f1)" -- "$cur"))
        return 0
    fi
    _redrive "$@"
}
complete -F _redrive_values -o bashdefault -o default redrive
