import Testing

@testable import TidemarkEngine

/// Random work on an index and on a model, compared all along.
struct IndexDifferentialTests {
  @Test(
    "an index answers like a dictionary whatever is written, frozen and merged",
    arguments: 0..<12)
  func differential(_ seed: Int) throws {
    var run = IndexRun(seed: UInt64(seed))
    for _ in 0..<400 { try run.step() }
    try run.compareAll()
  }
}

/// One random run.
struct IndexRun {
  let seed: UInt64
  var random: IndexRandom
  var model = IndexModel()
  let index: Index
  var sequence: UInt64 = 0
  let keyVariety: Int
  let labelVariety: Int

  init(seed: UInt64) {
    self.seed = seed
    random = IndexRandom(seed)
    index = Index(seed: random.next())
    keyVariety = [8, 60, 1000, 100_000][random.below(4)]
    labelVariety = [1, 4, 30][random.below(3)]
  }

  mutating func step() throws {
    switch random.below(10) {
    case 0..<6: for _ in 0..<(1 << random.below(7)) { try upsert() }
    case 6: try compareLookups()
    default: try comparePages()
    }
  }

  mutating func key() -> [UInt8] {
    let number = random.below(keyVariety)
    var mixed = IndexRandom(UInt64(number))
    switch number % 4 {
    case 0: return [UInt8]("user/\(number)".utf8)
    case 1: return [UInt8]("a-long-common-prefix/of-many-keys/\(number)".utf8)
    case 2: return [UInt8](repeating: UInt8(number & 1), count: 1 + number % 40)
    default: return (0..<(1 + mixed.below(12))).map { _ in UInt8(mixed.below(3) * 127) }
    }
  }

  mutating func labels() -> Set<[UInt8]> {
    var labels: Set<[UInt8]> = []
    for _ in 0..<random.below(4) {
      labels.insert([UInt8]("label\(random.below(labelVariety))".utf8))
    }
    return labels
  }

  mutating func upsert() throws {
    let key = key()
    let labels = labels()
    let size: SizeClass = random.below(5) == 0 ? .deleted : SizeClass(bytes: random.below(5000))
    sequence += 1
    let set = try index.labelTable.intern(Array(labels))
    let old = try index.upsert(
      key.rawSpan, hash: index.hash(key.rawSpan),
      Slot(sequence: sequence, labelSet: set, size: size))
    #expect(old?.sequence == model.rows[key]?.sequence, "seed \(seed)")
    model.upsert(key, sequence: sequence, size: size, labels: labels)
  }

  func check(_ key: [UInt8], _ slot: Slot?) throws {
    let row = model.rows[key]
    #expect(slot?.sequence == row?.sequence, "seed \(seed)")
    #expect(slot?.size == row?.size, "seed \(seed)")
    if let slot, let row, !slot.isDeleted {
      let labels = try index.labelTable.labels(ofSet: slot.labelSet)
      #expect(Set(labels) == row.labels, "seed \(seed)")
    }
  }

  mutating func compareLookups() throws {
    for _ in 0..<20 {
      let key = key()
      try check(key, index.lookup(key.rawSpan, hash: index.hash(key.rawSpan)))
    }
    #expect(index.liveKeys == model.liveKeys, "seed \(seed)")
  }

  mutating func bound() -> KeyBound {
    switch random.below(6) {
    case 0: .start
    case 1: .end
    case 2, 3: .including(key())
    default: .excluding(key())
    }
  }

  mutating func comparePages() throws {
    let descending = random.below(2) == 0
    var from = bound()
    var upTo = bound()
    if random.below(3) == 0 { (from, upTo) = descending ? (.end, .start) : (.start, .end) }
    let deleted = random.below(2) == 0
    let expected = model.keys(from: from, upTo: upTo, descending: descending) {
      deleted || !$0.size.isDeleted
    }
    let limit = 1 + random.below(100)
    var found: [[UInt8]] = []
    var page = KeyPage()
    var start = from
    while true {
      let end = try index.page(
        from: start, upTo: upTo, descending: descending, limit: limit, includeDeleted: deleted,
        into: &page)
      try collect(page, limit, &found)
      if end { break }
      start = page.resumption
    }
    #expect(found == expected, "seed \(seed)")
  }

  func collect(_ page: KeyPage, _ limit: Int, _ found: inout [[UInt8]]) throws {
    #expect(page.count <= limit, "seed \(seed)")
    for i in 0..<page.count {
      let key = [UInt8](copying: page.key(at: i))
      try check(key, page.slot(at: i))
      found.append(key)
    }
  }

  mutating func compareAll() throws {
    for key in model.rows.keys {
      try check(key, index.lookup(key.rawSpan, hash: index.hash(key.rawSpan)))
    }
    try compareLookups()
    #expect(index._checkInvariants(), "seed \(seed)")
  }
}
