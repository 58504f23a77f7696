"""Options that must stay accepted: command -> what is typed, split at blanks."""

RIGHT = {
    "run": [
        "", "partition=node edges.sparsity=0.95", "recipe=bigbird rows=[bm25,maxp,bigbird]", "training=keyb",
        "training=icli", "data=irds data.id=vaswani", "data=folder data.path=p data.splits.test=test_bal",
        "model.backbone=bert-base-uncased document_length=2048 partition.k=16 trainer=gpu",
        "partition._target_=my_module.MyPartition", "trainer.groups=16 data.queries.test=10 data.queries.dev=5",
        "trainer.groups=0", "trainer.save_every=0", "trainer.bf16=false", "trainer.bf16=auto", "trainer.compile=true",
        "data.queries.test=null", "data.queries.dev=null", "data.queries.dev=0", "+data.queries.found=true",
        "data.splits.test=[a,b]",
        "+data.runs.test=run.txt", "data=hub data.id=mteb/scifact", "data=msmarco data.candidates=runs trainer=paper",
        "data=trec-dl-2019 data.candidates=runs trainer=paper", "data=wtq", "data=fairytale", "data=covidqa",
        "data=wtq data.root=elsewhere", "seed=4294967295", "+partition.width=8",
        "~edges.patterns.static_distance", "+edges.weights.static_distance=0.3", "+edges.patterns.own._target_=m.C",
        "+trainer.arguments.gradient_accumulation_steps=2", "+trainer.arguments.gradient_checkpointing=true",
        "+trainer.arguments.max_steps=-1", "recipe=whole long_backbone=answerdotai/ModernBERT-base",
        "+data.year=2019 data.label=runs-${data.year}", "data.label=2019", "measures=[AP,R@100]", "check=false",
        "recipe=idcm", "recipe=colbert", "recipe=qds", "recipe=sentence-circles", "partition=sentences",
        "recipe.stages={a:1,b:0.5}", "report.columns=[model,paper,window]", "+trainer.arguments.optim=adafactor",
        "rows=[maxp]", "rows=[maxp,bm25] report.significance.to=[maxp]", "+edges.weights={}", "data.runs={}",
        "~edges.patterns +edges.patterns={own:{_target_:m.C}}",
    ],
    "table": [
        "", "table=whole-documents", "table=table2", "table=table2 size=gpu",
        "table=table2 rows=[parade,socialformer-edge] seeds=[0,1,2]",
        "size=gpu model.backbone=bert-base-uncased", "size.short=64 size.long=128 trainer.groups=4", "pack=true",
        "training.loss=hinge edges.sparsity=0.95 data.queries.test=10 trainer.arguments.learning_rate=1e-5",
    ],
    "study": [
        "", "size=cpu minutes=10", "size=gpu collections=[wtq,fairytale] seeds=[0,1,2] minutes=9", "minutes=0.5",
        "rows=[parade,socialformer-edge]", "rows=null minutes=0", "data_root=folder", "drawn=[]",
        "report.significance.to=[maxp]",
    ],
    "compare": [
        "", "level=training", "level=[evidence]", "baseline=edge", "baseline=[edge,0.93] seeds=[0,1,2]", "bounds=[]",
        "varied=['partition=node,edge']", "size=gpu", "levels.reading.measures=[sequences]", "baseline=0.9",
        "baseline=4", "baseline=[windows,null]", "baseline=[random,true]",
    ],
    "reader": ["", "folder=elsewhere", "training.steps=100 training.seed=1", "training.pooled=0"],
}  # fmt: skip
