import Testing

@testable import TidemarkEngine

/// One random run of an index beside a model.
struct IndexRun {
  let seed: UInt64
  var random: IndexRandom
  var model = IndexModel()
  var index: Index
  var sequence: UInt64 = 0
  let keyVariety: Int
  let labelVariety: Int
  let files = MemoryFileSystem()
  var runs = 0
  /// The sequence that a key had before its newest.
  var former: [[UInt8]: UInt64] = [:]
  /// The last sequence in the frozen memtable, while there is one.
  var frozenAt: UInt64?

  init(seed: UInt64) throws {
    self.seed = seed
    random = IndexRandom(seed)
    index = Index(seed: random.next())
    keyVariety = [8, 60, 1000, 100_000][random.below(4)]
    labelVariety = [1, 4, 30][random.below(3)]
  }

  func require(_ condition: Bool, _ what: String) {
    if !condition { Issue.record("\(what), seed \(seed), sequence \(sequence)") }
  }

  mutating func step() throws {
    switch random.below(20) {
    case 0..<10: for _ in 0..<(1 << random.below(9)) { try upsert() }
    case 10:
      try compareLookups()
      try compareNearby()
    case 11: try compareCounts()
    case 12: try merge()
    case 13: try freeze()
    case 14: if random.below(4) == 0 { try reopen() }
    case 15, 16: try comparePages()
    case 17: try compareFormerPages()
    default: try compareLabelPages()
    }
  }

  mutating func key() -> [UInt8] {
    let number = random.below(keyVariety)
    var mixed = IndexRandom(UInt64(number))
    switch number % 4 {
    case 0: return [UInt8]("user/\(number)".utf8)
    case 1: return [UInt8]("a-long-common-prefix/of-many-keys/\(number)".utf8)
    case 2: return [UInt8](repeating: UInt8(number & 1), count: 1 + number % 400)
    default: return (0..<(1 + mixed.below(12))).map { _ in UInt8(mixed.below(3) * 127) }
    }
  }

  mutating func label() -> [UInt8] { [UInt8]("label\(random.below(labelVariety))".utf8) }

  mutating func labels(_ most: Int) -> [[UInt8]] {
    (0..<random.below(most + 1)).map { _ in label() }
  }

  mutating func upsert() throws {
    let key = key()
    let labels = labels(3)
    let size: SizeClass = random.below(5) == 0 ? .deleted : SizeClass(bytes: random.below(5000))
    sequence += 1
    let set = try index.labelTable.intern(labels)
    let old = try index.upsert(
      key.rawSpan, hash: index.hash(key.rawSpan),
      Slot(sequence: sequence, labelSet: set, size: size))
    require(old?.sequence == model.rows[key]?.newest.sequence, "old slot differs")
    former[key] = old?.sequence
    model.upsert(key, sequence: sequence, size: size, labels: Set(labels))
  }

  // MARK: Merging

  mutating func freeze() throws {
    guard frozenAt == nil else { return }
    index.freeze()
    frozenAt = sequence
  }

  mutating func merge() throws {
    try freeze()
    let count = index.runs.runs.count
    let taken = random.below(3) == 0 ? count : random.below(count + 1)
    let input = index.mergeInput(taking: taken)
    // A run that could not be written.
    if random.below(5) == 0 { return }
    let drop = random.below(2) == 0 ? 0 : UInt64(random.below(Int(sequence) + 1))
    let keepFormer = random.below(4) != 0
    runs += 1
    let file = try files.open("/\(runs)", .create)
    let userInfo = [UInt8](repeating: 7, count: random.below(100_000))
    let info = RunInfo(
      storeID: [UInt8](repeating: 1, count: 16), runID: random.next(),
      sequence: frozenAt ?? 0, userInfo: userInfo, dropTombstonesThrough: drop,
      keepFormerMembers: keepFormer)
    for _ in 0..<random.below(300) { try upsert() }
    try RunWriter.write(input, to: file, info: info)
    let run = try SortedRun(file: file)
    require(try run.userInfo() == userInfo, "what was kept beside differs")
    require(run.header.sequence == frozenAt, "sequence differs")
    for _ in 0..<random.below(300) { try upsert() }
    let nearby = NearbyKeys(index.runs)
    _ = try index.publish(run, taking: taken)
    require(!nearby.isCurrent(index), "runs that were replaced count as current")
    require(index.runs.runs.count == count - taken + 1, "another number of runs")
    if taken == count {
      model.merge(frozenAt: frozenAt ?? 0, dropThrough: drop, keepFormer: keepFormer)
    }
    frozenAt = nil
    require(index._checkInvariants(), "invariants broken")
  }

  /// Writes everything and goes on with an index that knows the runs only.
  mutating func reopen() throws {
    if frozenAt != nil { try merge() }
    guard frozenAt == nil else { return }
    try freeze()
    runs += 1
    let file = try files.open("/\(runs)", .create)
    let info = RunInfo(
      storeID: [UInt8](repeating: 1, count: 16), runID: random.next(), sequence: sequence)
    try RunWriter.write(index.mergeInput(taking: 0), to: file, info: info)
    frozenAt = nil
    index = Index(
      runs: RunList([try SortedRun(file: file)] + index.runs.runs), seed: index.seed)
  }

  // MARK: Comparing

  func check(_ key: [UInt8], _ slot: Slot?) throws {
    let version = model.rows[key]?.newest
    require(slot?.sequence == version?.sequence, "sequence differs")
    require(slot?.size == version?.size, "size differs")
    if let slot, let version {
      let labels = try index.labelTable.labels(ofSet: slot.labelSet)
      require(Set(labels) == version.labels, "labels differ")
    }
  }

  mutating func compareLookups() throws {
    for _ in 0..<50 {
      let key = key()
      let hash = index.hash(key.rawSpan)
      if random.below(2) == 0 { index.prefetch([hash, hash &+ 1, random.next()]) }
      let slot = try index.lookup(key.rawSpan, hash: hash)
      try check(key, slot)
      try checkNewest(key, hash, slot)
    }
  }

  /// Looks up many keys one behind the other, mostly in their order.
  mutating func compareNearby() throws {
    var nearby = NearbyKeys(index.runs)
    require(nearby.isCurrent(index), "the runs are others")
    for _ in 0..<3 {
      var keys = (0..<(1 + random.below(200))).map { _ in key() }
      if random.below(4) != 0 { keys = Set(keys).sorted { $0.lexicographicallyPrecedes($1) } }
      var page = KeyPage()
      for key in keys { page.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted)) }
      let slots = try nearby.slots(of: page, keys.map { index.hash($0.rawSpan) })
      for (key, slot) in zip(keys, slots) {
        try check(key, index.lookupDeltas(key.rawSpan, hash: index.hash(key.rawSpan)) ?? slot)
      }
    }
  }

  /// Asks whether a sequence is a key's newest, with what was asked from memory before or not.
  mutating func checkNewest(_ key: [UInt8], _ hash: UInt64, _ slot: Slot?) throws {
    if random.below(2) == 0 { index.runs.prefetch([hash]) }
    if let slot {
      let isNewest = try index.isNewest(slot.sequence, of: key.rawSpan, hash: hash)
      require(isNewest, "the newest is not found")
    }
    if let former = former[key] {
      let isNewest = try index.isNewest(former, of: key.rawSpan, hash: hash)
      require(!isNewest, "a former one is taken for the newest")
    }
  }

  func compareCounts() throws {
    require(index.liveKeys == model.liveKeys, "live keys differ")
    let found = try index.labelCounts()
    let expected = model.labelCounts.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    require(found.map(\.label) == expected.map(\.key), "labels listed differ")
    require(found.map(\.count) == expected.map(\.value), "label counts differ")
  }

  mutating func bound() -> KeyBound {
    switch random.below(6) {
    case 0: .start
    case 1: .end
    case 2, 3: .including(key())
    default: .excluding(key())
    }
  }

  mutating func range() -> (from: KeyBound, upTo: KeyBound, descending: Bool) {
    let descending = random.below(2) == 0
    if random.below(3) == 0 {
      return descending ? (.end, .start, true) : (.start, .end, false)
    }
    return (bound(), bound(), descending)
  }

  /// All keys of all pages from a bound on.
  mutating func collect(
    from: KeyBound, _ next: (KeyBound, Int, inout KeyPage) throws -> Bool
  ) throws -> [[UInt8]] {
    let limit = 1 + random.below(100)
    var found: [[UInt8]] = []
    var page = KeyPage()
    var start = from
    while true {
      let end = try next(start, limit, &page)
      require(page.count <= limit, "page too long")
      for i in 0..<page.count {
        let key = [UInt8](copying: page.key(at: i))
        try check(key, page.slot(at: i))
        found.append(key)
      }
      if end { return found }
      start = page.resumption
    }
  }

  mutating func comparePages() throws {
    let (from, upTo, descending) = range()
    let deleted = random.below(2) == 0
    let expected = model.keys(from: from, upTo: upTo, descending: descending) {
      deleted || !$0.newest.size.isDeleted
    }
    let index = self.index
    let found = try collect(from: from) { start, limit, page in
      try index.page(
        from: start, upTo: upTo, descending: descending, limit: limit, includeDeleted: deleted,
        into: &page)
    }
    require(found == expected, "keys in order differ")
  }

  mutating func query() -> LabelQuery {
    LabelQuery(all: labels(2), any: random.below(2) == 0 ? [] : labels(3), not: labels(1))
  }

  mutating func compareLabelPages() throws {
    let (from, upTo, descending) = range()
    let query = query()
    let expected = model.keys(from: from, upTo: upTo, descending: descending) {
      query.matches($0.newest)
    }
    let index = self.index
    let found = try collect(from: from) { start, limit, page in
      try index.page(
        matching: query, from: start, upTo: upTo, descending: descending, limit: limit,
        into: &page)
    }
    require(found == expected, "keys of \(query) differ")
  }

  mutating func compareFormerPages() throws {
    let (from, upTo, descending) = range()
    let label = label()
    let index = self.index
    let query = LabelQuery(all: [label])
    let found = try collect(from: from) { start, limit, page in
      try index.page(
        matching: query, from: start, upTo: upTo, descending: descending, limit: limit,
        includeFormer: true, into: &page)
    }
    let least = model.keys(from: from, upTo: upTo, descending: descending) {
      $0.remembered.contains(label)
    }
    let most = model.keys(from: from, upTo: upTo, descending: descending) {
      $0.ever.contains(label)
    }
    require(Set(found).isSuperset(of: least), "former members are missing")
    require(most.filter(Set(found).contains) == found, "former members are out of order")
  }

  mutating func compareAll() throws {
    for key in model.rows.keys {
      try check(key, index.lookup(key.rawSpan, hash: index.hash(key.rawSpan)))
    }
    try compareCounts()
    require(index._checkInvariants(), "invariants broken")
  }
}
