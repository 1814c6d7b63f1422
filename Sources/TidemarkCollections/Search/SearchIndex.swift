internal import TidemarkEngine

/// A full-text index while it is in use: its segments, and in memory the documents that are in none
/// yet.
final class SearchIndex: Sendable {
  /// Documents that are in no segment, at most, before one is made of them.
  static let tailDocuments = 512
  /// So many segments of a level make one of the next.
  static let fanOut = 8

  struct Tail: Sendable {
    var words: [[UInt8]: Postings] = [:]
    var lengths: [UInt64: Int] = [:]
    var through: UInt64 = 0
  }

  struct State: Sendable {
    var isLoaded = false
    var catalog = SearchCatalog()
    var tail = Tail()
    /// How long the documents of each segment are.
    var lengths: [UInt32: [UInt8]] = [:]
    var next: UInt64 = 0
    var written = 0
    var isMerging = false
    /// Whether the index is gone.
    var isDropped = false
    /// Another number after each change of catalog or tail.
    var generation = 0
    /// The newest state of the store of which anything is in catalog and tail.
    var sequence: UInt64 = 0
  }

  let number: UInt32
  // The engine holds the index, by way of what derives rows for it.
  unowned let engine: Engine
  let state = Lock(State())

  init(_ number: UInt32, _ engine: Engine) {
    self.number = number
    self.engine = engine
  }

  // MARK: Documents

  /// Finds the number of the next document, if that is not known; nobody holds a lock.
  func prepareNumber() throws(TidemarkError) {
    var isKnown = false
    while !isKnown {
      let (next, before) = state.withLock { ($0.next, $0.generation) }
      if next > 0 { return }
      let first = try firstNumber()
      // Another process may have had the store in between, and have given the number to others.
      isKnown = state.withLock { state in
        guard state.generation == before else { return false }
        if state.next == 0 { state.next = first }
        return true
      }
    }
  }

  /// The number of a new document, while nobody else writes; nil where it is not known any more.
  func nextDocument() -> UInt64? {
    state.withLock { state in
      guard state.next > 0 else { return nil }
      defer {
        state.next += 1
        state.written += 1
      }
      return state.next
    }
  }

  /// Looks at everything anew: another process may have written.
  func forget() {
    state.withLock { state in
      state = State(
        written: state.written, isMerging: state.isMerging, isDropped: state.isDropped,
        generation: state.generation + 1)
    }
  }

  /// No number is given again that a segment may speak of.
  private func firstNumber() throws(TidemarkError) -> UInt64 {
    let catalog = try Self.catalog(engine, number)
    var last = catalog.through
    for key in try engine.reader.firstKeys(
      withPrefix: IndexKeys.rows(ofIndex: number), limit: 1, fromEnd: true)
    {
      last = max(last, SearchKeys.document(try IndexKeys.parts(ofRow: key).term))
    }
    return last + 1
  }

  static func catalog(_ engine: Engine, _ number: UInt32) throws(TidemarkError) -> SearchCatalog {
    try engine.reader.withValue(forKey: SearchKeys.catalog(number).rawSpan) {
      (value, _) throws(TidemarkError) in try SearchCatalog(decoding: value)
    } ?? SearchCatalog()
  }

  // MARK: Reading

  /// Takes up the documents that were committed since the last look.
  func refresh(_ view: EngineView) throws(TidemarkError) -> State {
    while true {
      try load()
      let before = state.withLock { $0 }
      guard before.isLoaded else { continue }
      var tail = before.tail
      try forEachDocument(behind: tail.through, view) { (document, vector) in
        for word in vector.words {
          tail.words[word.word, default: Postings()].append(
            document, UInt32(clamping: word.weight))
        }
        tail.lengths[document] = vector.length
        tail.through = document
      }
      // A merge, or another search, may have been faster: then it is looked again.
      let now: State? = state.withLock { state in
        guard state.generation == before.generation else { return nil }
        if tail.through != state.tail.through {
          state.tail = tail
          state.sequence = max(state.sequence, view.sequence)
          state.generation += 1
          state.written = max(state.written, tail.lengths.count)
        }
        return state
      }
      if let now { return now }
    }
  }

  private func load() throws(TidemarkError) {
    let (isLoaded, before) = state.withLock { ($0.isLoaded, $0.generation) }
    if isLoaded { return }
    let catalog = try Self.catalog(engine, number)
    let last = engine.reader.lastSequence
    state.withLock { state in
      guard !state.isLoaded, state.generation == before else { return }
      state.catalog = catalog
      state.sequence = max(state.sequence, last)
      state.tail.through = catalog.through
      state.isLoaded = true
      state.generation += 1
    }
  }

  /// Calls `body` with the documents behind one, in order.
  func forEachDocument(
    behind document: UInt64, _ view: EngineView, limit: Int = .max,
    _ body: (UInt64, WordVector) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    let prefix = IndexKeys.rows(ofIndex: number)
    var query = ScanQuery(prefix: prefix)
    query.from = .including(prefix + SearchKeys.term(document + 1))
    try EngineScan(engine.reader, query, view: view).forEach(limit: limit) {
      (row) throws(TidemarkError) in
      let number = SearchKeys.document(try IndexKeys.parts(ofRow: row.key).term)
      let vector = try view.derivedValue(row.key) {
        (value) throws(TidemarkError) in
        try WordVector(decoding: value)
      }
      if let vector { try body(number, vector) }
    }
  }

  /// The row of a document; nil when it is not there in a state.
  func row(
    _ document: UInt64, in view: EngineView
  ) throws(TidemarkError) -> (key: [UInt8], id: [UInt8])? {
    let prefix = IndexKeys.rows(ofIndex: number) + SearchKeys.term(document)
    let scan = EngineScan(engine.reader, ScanQuery(prefix: prefix), view: view)
    guard let row = try scan.nextPage(limit: 1).first else { return nil }
    return (row.key, Array(try IndexKeys.parts(ofRow: row.key).id))
  }

  /// How long the documents of a segment are.
  func lengths(_ segment: SearchCatalog.Segment) throws(TidemarkError) -> [UInt8] {
    let (known, before) = state.withLock { ($0.lengths[segment.number], $0.generation) }
    if let known { return known }
    let key = SearchKeys.lengths(number, segment.number)
    let lengths =
      try engine.reader.withValue(forKey: key.rawSpan) { (value, _) in [UInt8](copying: value) }
      ?? []
    state.withLock { if $0.generation == before { $0.lengths[segment.number] = lengths } }
    return lengths
  }

  /// The postings of a word in a segment, or of all words that begin with it.
  func postings(
    _ word: [UInt8], isPrefix: Bool, in segment: SearchCatalog.Segment
  ) throws(TidemarkError) -> Postings {
    let prefix = SearchKeys.blocks(number, segment.number)
    var lists: [Postings] = []
    // The block that the word is in begins with it, or with a word before it.
    var keys = try engine.keys(from: prefix, through: prefix + word, limit: 1, descending: true)
    if isPrefix {
      keys += try engine.keys(
        from: prefix + word + [0], through: TermRange.end(of: prefix + word) ?? prefix)
    }
    for key in keys {
      _ = try engine.reader.read(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
        try SegmentBlock.forEach(value) { (entry, count, range) throws(TidemarkError) in
          if entry == word || isPrefix && entry.starts(with: word) {
            lists.append(try Postings(decoding: value.extracting(range), count: count))
          } else if word.lexicographicallyPrecedes(entry) {
            return false
          }
          return true
        }
      }
    }
    return Postings(of: lists)
  }
}

extension Engine {
  /// Keys in a range of derived ones.
  func keys(
    from first: [UInt8], through last: [UInt8], limit: Int = .max, descending: Bool = false
  ) throws(TidemarkError) -> [[UInt8]] {
    var query = ScanQuery(prefix: DerivedKeys.prefix)
    query.from = .including(first)
    query.upTo = .including(last)
    query.descending = descending
    return try keys(query, limit: limit)
  }
}
