"""Teach a reader, such as "minilm-reader" that comes along: make shards, train, write it as a backbone.

python experiments/reader.py --help explains the options. Shards that were made are found again.
backbone=FOLDER/backbone starts from what was taught; minilm-reader.safetensors is the same, cut to be shipped.
"""

from lab.command import begin, command

begin()

from omegaconf import DictConfig


@command("reader")
def main(config: DictConfig) -> None:
    """Do what the configuration describes."""
    from pathlib import Path

    import torch
    from lab.reader.make import make_shards, make_tests, shards_of_collection
    from lab.reader.publish import publish, save_as_bert
    from lab.reader.shards import Shard
    from lab.reader.training import Lessons, lessons_of, log, train
    from lab.task import instantiate_as
    from tqdm import tqdm

    from socialgraph.data import Collection
    from socialgraph.nn import MaxP, SentenceEncoder

    torch.set_num_threads(config.threads)
    torch.manual_seed(config.training.seed)
    folder, device = Path(config.folder), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    make_tests(config.tests, folder / "tests")
    make_shards(config.sources, config.tests, folder / "shards")
    for name, spec in config.collections.items():
        collection = instantiate_as(spec, f"collections.{name}", Collection)
        shards_of_collection(name, collection, Path(config.data_root) / name, folder / "shards")
    encoder = SentenceEncoder.from_backbone("minilm").eval().to(device)
    lessons = []
    for number, file in enumerate(tqdm(sorted((folder / "shards").glob("*.npz")), "teachers", disable=None)):
        repeats = config.training.repeats if file.name.startswith("real-") else config.training.others
        lessons.append(lessons_of(Shard.read(file), encoder, config.training, number, repeats))
    several = Lessons.joined(lessons)
    log.info("%d passages, %d groups of them", len(several.ptr) - 1, len(several.groups.question))
    reader = MaxP.from_backbone("minilm", dropout=0.0).to(device)
    train(reader, several, config.training)
    reader = reader.cpu()
    save_as_bert(reader, folder / "backbone")
    log.info("start from it with backbone=%s", folder / "backbone")
    digest = publish(reader, folder / "minilm-reader.safetensors", config.rank)
    log.info("%s: sha256 %s", folder / "minilm-reader.safetensors", digest)


if __name__ == "__main__":
    main()
