
# Pipelines, causes and rounds, as they are now.
complete -c redrive -s p -l pipeline -x -a "(redrive complete pipelines 2>/dev/null)"
complete -c redrive -l cause -x -a "(redrive complete causes 2>/dev/null)"
complete -c redrive -l round -x -a "(redrive complete rounds 2>/dev/null)"
complete -c redrive -n "__fish_seen_subcommand_from pipeline; and __fish_seen_subcommand_from show pause resume" -f -a "(redrive complete pipelines 2>/dev/null)"
complete -c redrive -n "__fish_seen_subcommand_from cause; and __fish_seen_subcommand_from show assign note mute unmute resolve reopen merge split" -f -a "(redrive complete causes 2>/dev/null)"
