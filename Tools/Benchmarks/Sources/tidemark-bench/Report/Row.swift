/// A line of the result.
struct Row {
  var id: String
  var title: String
  var unit: String
  var moreIsBetter: Bool
  var targets: [Target] = []
  /// The machine's own limit that it is compared with: the better, the nearer to 1.
  var limit: String?

  /// All rows in the order in which they are printed, by what they are about.
  static func sections(n: Int) -> [(title: String, rows: [Row])] {
    [
      ("Writing", writing), ("Reading", reading), ("Opening", opening(n)),
      ("Space, memory and upkeep", keeping(n)),
    ]
  }

  static func all(n: Int) -> [Row] { sections(n: n).flatMap(\.rows) }

  private static let writing = [
    Row(
      id: "P1", title: "load in batches of 1,000", unit: "k/s", moreIsBetter: true,
      targets: [.times(2, .rocksdbZstd)]),
    Row(
      id: "P1L", title: "load with one label a record", unit: "k/s", moreIsBetter: true,
      targets: [.times(1.5, .rocksdbZstd, row: "P1")]),
    Row(
      id: "P2", title: "single puts, async", unit: "k/s", moreIsBetter: true,
      targets: [.times(1.5, .tkrzw)]),
    Row(
      id: "P2b", title: "single puts, buffered", unit: "k/s", moreIsBetter: true,
      targets: [.times(1.8, .leveldb), .times(3, .rocksdbZstd)]),
    Row(
      id: "P3", title: "durable puts, one writer", unit: "k/s", moreIsBetter: true,
      targets: [.timesBest(1.3), .timesLimit(0.95, "sync")], limit: "sync"),
    Row(
      id: "P4", title: "durable puts, 8 writers", unit: "k/s", moreIsBetter: true,
      targets: [.timesBest(1.5)], limit: "sync"),
    Row(
      id: "P12", title: "deletes in batches of 1,000, then a sync", unit: "k/s", moreIsBetter: true,
      targets: [.times(2, .leveldb)]),
    Row(
      id: "P15", title: "put during a full compaction, 99.9th percentile", unit: "ms",
      moreIsBetter: false, targets: [.figure(5)]),
    Row(
      id: "P15m", title: "put during a full compaction, longest", unit: "ms", moreIsBetter: false,
      targets: [.figure(50)]),
    Row(
      id: "P19", title: "processor time of an async put with its upkeep, first round",
      unit: "us", moreIsBetter: false, targets: [.figure(5)]),
    Row(
      id: "P19n", title: "processor time of an async put with its upkeep, later rounds",
      unit: "us", moreIsBetter: false,
      targets: [.figure(5)]),
    Row(
      id: "P19b", title: "processor time of a buffered put with its upkeep, first round",
      unit: "us", moreIsBetter: false, targets: [.figure(5)]),
    Row(
      id: "P19bn",
      title: "processor time of a buffered put with its upkeep, later rounds",
      unit: "us", moreIsBetter: false,
      targets: [.figure(5)]),
    Row(
      id: "P16", title: "replay of unsynced entries over HTTP", unit: "k/s", moreIsBetter: true,
      targets: [.figure(200)]),
    Row(
      id: "P16m", title: "replay of unsynced entries over HTTP, largest memory", unit: "MB",
      moreIsBetter: false),
  ]

  private static let reading = [
    Row(
      id: "P5", title: "get, value in the cache, median", unit: "us", moreIsBetter: false,
      targets: [.times(0.75, .tkrzw)]),
    Row(
      id: "P5t", title: "gets by two threads, times those by one", unit: "x", moreIsBetter: true,
      targets: [.figure(1.8)]),
    Row(
      id: "P5s", title: "get after one full scan, cache larger than the data, median", unit: "us",
      moreIsBetter: false, targets: [.times(1, .lmdb)]),
    Row(
      id: "P6", title: "get, page cache only, compacted, median", unit: "us",
      moreIsBetter: false, targets: [.figure(2.5)], limit: "pread"),
    Row(
      id: "P6e", title: "get with labels and times, page cache only, compacted, median", unit: "us",
      moreIsBetter: false),
    Row(
      id: "P6d", title: "get, page cache only, compacted densely, median", unit: "us",
      moreIsBetter: false,
      targets: [.figure(15)], limit: "pread"),
    Row(
      id: "P18", title: "get, nothing in memory, mean of 4,000", unit: "us",
      moreIsBetter: false, targets: [.figure(60)]),
    Row(
      id: "P7", title: "gets by Zipf's law, cache of 10 %", unit: "k/s", moreIsBetter: true,
      targets: [.times(5, .rocksdbZstd)]),
    Row(
      id: "P7m", title: "memory of gets by Zipf's law, code apart", unit: "MB", moreIsBetter: false,
      targets: [.figure(70)]),
    Row(
      id: "P7c", title: "gets by Zipf's law, cache of 10 %, compacted", unit: "k/s",
      moreIsBetter: true, targets: [.times(5, .rocksdbZstd)]),
    Row(
      id: "P7cm", title: "memory of gets by Zipf's law, compacted, code apart", unit: "MB",
      moreIsBetter: false,
      targets: [.figure(70)]),
    Row(
      id: "P10", title: "scans of 100 records by key, never compacted", unit: "k/s",
      moreIsBetter: true,
      targets: [.times(1.2, .rocksdbZstd)]),
    Row(
      id: "P10c", title: "scans of 100 records by key, compacted", unit: "k/s", moreIsBetter: true,
      targets: [.times(1, .leveldb), .times(1.2, .rocksdbZstd)]),
    Row(
      id: "P11", title: "records of a label, never compacted", unit: "k/s", moreIsBetter: true,
      targets: [.times(3, .rocksdbZstd)]),
    Row(
      id: "P11e", title: "records of a label with labels and times, never compacted", unit: "k/s",
      moreIsBetter: true),
    Row(
      id: "P11c", title: "records of a label, compacted", unit: "k/s", moreIsBetter: true,
      targets: [.times(3, .rocksdbZstd)]),
    Row(
      id: "P11ec", title: "records of a label with labels and times, compacted", unit: "k/s",
      moreIsBetter: true),
    Row(
      id: "P11k", title: "keys of a label", unit: "k/s", moreIsBetter: true,
      targets: [.figure(5000)]),
  ]

  private static func opening(_ n: Int) -> [Row] {
    [
      Row(
        id: "P8", title: "open after a clean close, and the first get", unit: "ms",
        moreIsBetter: false, targets: [.figure(1)]),
      Row(
        id: "P8r", title: "open a second time, and the first get", unit: "ms", moreIsBetter: false,
        targets: [.figure(1)]),
      Row(
        id: "P8c", title: "open with a cold page cache, and the first get", unit: "ms",
        moreIsBetter: false,
        targets: [.figure(10)]),
      Row(
        id: "P9", title: "open after kill -9 with 64 MiB of log, and the first get", unit: "ms",
        moreIsBetter: false,
        targets: [.figure(250)]),
      Row(
        id: "P9r", title: "open without an index, and the first get", unit: "ms",
        moreIsBetter: false,
        targets: [.figure(Double(n) / 10_000_000 * 6000)]),
    ]
  }

  private static func keeping(_ n: Int) -> [Row] {
    let keyBytes = Double(KeyText.byteCount)
    return [
      Row(
        id: "C", title: "full compaction that drops 39 % of the entries", unit: "s",
        moreIsBetter: false,
        targets: [.times(1, .rocksdbZstd)]),
      Row(id: "P13", title: "disk after the load", unit: "MB", moreIsBetter: false),
      Row(
        id: "P13c", title: "disk with one label a record, compacted", unit: "MB",
        moreIsBetter: false, targets: [.times(1, .rocksdbZstd)]),
      Row(
        id: "P13d", title: "disk with one label a record, compacted densely", unit: "MB",
        moreIsBetter: false,
        targets: [.times(0.75, .rocksdbZstd, row: "P13c")]),
      Row(
        id: "P14", title: "memory to read at random, caches apart", unit: "MB",
        moreIsBetter: false, targets: [.figure(Double(n) * (keyBytes + 20) / 1e6)]),
      Row(
        id: "P14d", title: "memory after a load, before closing", unit: "MB", moreIsBetter: false,
        targets: [.figure(Double(n) * (keyBytes + 48) / 1e6)]),
      Row(
        id: "P17", title: "log of a repository's history, dense, of git's pack", unit: "x",
        moreIsBetter: false, targets: [.figure(1.2)]),
    ]
  }
}
