"""Teach a reader, such as "minilm-reader" that comes along: cut passages, train, write it as a backbone.

python experiments/reader.py --help explains the options. A training that was killed goes on with the same command.
backbone=FOLDER/backbone starts from what was taught; minilm-reader.safetensors is the same, cut to be shipped.
"""

from lab.command import begin, command

begin()

from omegaconf import DictConfig, OmegaConf


@command("reader")
def main(config: DictConfig) -> None:
    """Do what the configuration describes."""
    from pathlib import Path

    import torch
    from lab.reader.passages import make_pool
    from lab.reader.publish import publish, save_as_bert
    from lab.reader.training import Training, log
    from lab.task import made

    from socialgraph.data import Collection
    from socialgraph.data.evidence import evidence_of

    torch.set_num_threads(config.threads)
    folder = Path(config.folder)
    collections = {
        name: made(one.collection, f"collections.{name}.collection", Collection)
        for name, one in config.collections.items()
    }
    pools = {}
    for name, collection in collections.items():
        evidence = evidence_of(name, collection, Path(config.data_root) / name)
        pools[name] = make_pool(collection, evidence, folder, made_up=config.collections[name].made_up)
        log.info("%s: %d passages, %d questions", name, len(pools[name].document), len(pools[name].questions))
    shares = {name: one.share for name, one in config.collections.items()}
    training = Training(pools, OmegaConf.create({**config.training, "shares": shares}), folder)
    training.train()
    reader = training.averaged()
    save_as_bert(reader, folder / "backbone")
    log.info("start from it with backbone=%s", folder / "backbone")
    digest = publish(reader, folder / "minilm-reader.safetensors", config.rank)
    log.info("%s: sha256 %s", folder / "minilm-reader.safetensors", digest)


if __name__ == "__main__":
    main()
