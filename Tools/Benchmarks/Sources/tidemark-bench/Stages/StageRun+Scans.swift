import Foundation

extension StageRun {
  /// A hundred records by key from a random one on; everything was scanned before.
  func scans(_ row: String, labelled: Bool) throws {
    let engine = try engine(labelled: labelled)
    let reader = try engine.reader()
    let length = min(100, n)
    let count = min(20_000, max(1000, n / 25))
    let key = KeyBuffer()
    var check = Check(values)
    try reader.scan(from: key.key(0), count: .max, &check)
    try check.expect(n)
    var random = SeededRandom(seed: seed())
    let starts = (0..<count).map { _ in random.below(n - length + 1) }
    let cost = try Cost {
      for start in starts { try reader.scan(from: key.key(start), count: length, &check) }
    }
    try check.expect(n + count * length)
    show(Measure(row, rate: count, cost))
    reader.close()
    try engine.close()
  }

  /// All documents of labels, and only their keys.
  func documents(_ row: String, whole wholeRow: String, keys keysRow: String?) throws {
    let engine = try engine(labelled: true)
    let reader = try engine.reader()
    let sizes = labels.sizes(n: n)
    let order = Order.shuffled(labels.count, count: min(labels.count, 300), seed: seed()).map(
      Int.init)
    let expected = order.reduce(0) { $0 + sizes[$1] }
    // Once before the clock runs: caches hold everything, as with the other reads.
    var check = Check(values)
    for label in order { try reader.documents(label: label, &check) }
    let cost = try Cost {
      for label in order { try reader.documents(label: label, &check) }
    }
    try check.expect(expected * 2)
    show(Measure(row, rate: expected, cost))
    var wholes = Check(values)
    let wholeCost = try Cost {
      for label in order { try reader.wholeDocuments(label: label, &wholes) }
    }
    try wholes.expect(expected)
    show(Measure(wholeRow, rate: expected, wholeCost))
    if let keysRow {
      var check = Check(values)
      for label in order { try reader.keys(label: label, &check) }
      let cost = try Cost {
        for label in order { try reader.keys(label: label, &check) }
      }
      try check.expect(expected * 2)
      show(Measure(keysRow, rate: expected, cost))
    }
    reader.close()
    try engine.close()
  }
}
