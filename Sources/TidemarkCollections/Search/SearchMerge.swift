internal import TidemarkEngine

/// Makes segments of documents that are in none, and larger ones of smaller ones.
///
/// The blocks of a segment are committed before the catalog names it, so that a crash leaves blocks
/// that nobody reads; the next merge removes them. Documents that are gone are left out.
extension SearchIndex {
  /// Makes what is due.
  func merge() throws(TidemarkError) {
    let isFirst = state.withLock { state in
      defer { state.isMerging = true }
      return !state.isMerging
    }
    guard isFirst else { return }
    defer { state.withLock { $0.isMerging = false } }
    let takeovers = engine.takeovers
    do throws(TidemarkError) {
      try removeOrphans(takeovers)
      while try mergeTail(takeovers) {}
      while try mergeLevel(takeovers) {}
    } catch {
      // As many writes again, before the next attempt.
      state.withLock { $0.written = 0 }
      throw error
    }
  }

  /// Whether so many documents are in no segment that one is due.
  var isMergeDue: Bool {
    state.withLock { !$0.isMerging && $0.written >= Self.tailDocuments }
  }

  /// Makes a segment of the documents that are in none, if there are enough of them.
  /// - Returns: whether it did.
  private func mergeTail(_ takeovers: UInt64) throws(TidemarkError) -> Bool {
    let view = try engine.reader.view()
    var catalog = try Self.catalog(engine, number)
    var words: [[UInt8]: Postings] = [:]
    var lengths: [UInt8] = []
    var segment = SearchCatalog.Segment(
      number: catalog.lastNumber + 1, level: 0, first: catalog.through + 1, last: 0, documents: 0,
      words: 0)
    // So many at a time as fit well into memory.
    let most = 4 * Self.tailDocuments
    try forEachDocument(behind: catalog.through, view, limit: most) { (document, vector) in
      for word in vector.words {
        words[word.word, default: Postings()].append(document, UInt32(clamping: word.weight))
      }
      if segment.documents == 0 { segment.first = document }
      // Documents that are gone have no length.
      while segment.first + UInt64(lengths.count) < document { lengths.append(0) }
      lengths.append(DocumentLength.byte(vector.length))
      segment.documents += 1
      segment.words += vector.length
      segment.last = document
    }
    guard segment.documents >= Self.tailDocuments else {
      // Numbers of what was written over since are not kept in memory for ever.
      state.withLock { state in
        state.written = segment.documents
        state.tail = Tail(through: state.catalog.through)
        state.generation += 1
      }
      return false
    }
    var writer = SegmentWriter(
      engine, index: number, segment: segment.number, takeovers: takeovers)
    for word in words.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      try writer.add(word, words[word] ?? Postings())
    }
    try writer.finish(lengths: lengths)
    catalog.segments.append(segment)
    catalog.lastNumber = segment.number
    try commit(catalog, takeovers)
    return true
  }

  /// Makes one segment of several of a level.
  private func mergeLevel(_ takeovers: UInt64) throws(TidemarkError) -> Bool {
    var catalog = try Self.catalog(engine, number)
    guard
      let level = Set(catalog.segments.map(\.level)).sorted().first(where: { level in
        catalog.segments.count { $0.level == level } >= Self.fanOut
      }),
      let start = catalog.segments.firstIndex(where: { $0.level == level })
    else { return false }
    let sources = Array(catalog.segments[start...].prefix { $0.level == level })
    guard sources.count >= Self.fanOut, let first = sources.first, let last = sources.last else {
      return false
    }
    let view = try engine.reader.view()
    let live = try liveDocuments(first.first...last.last, view)
    var segment = SearchCatalog.Segment(
      number: catalog.lastNumber + 1, level: level + 1, first: first.first, last: last.last,
      documents: 0, words: 0)
    var writer = SegmentWriter(
      engine, index: number, segment: segment.number, takeovers: takeovers)
    var readers = sources.map {
      SegmentReader(engine, index: number, segment: $0.number, view: view)
    }
    while let (word, postings) = try Self.next(&readers) {
      var kept = Postings()
      for (document, weight) in zip(postings.documents, postings.weights)
      where live.contains(document) { kept.append(document, weight) }
      try writer.add(word, kept)
    }
    var lengths: [UInt8] = []
    for source in sources {
      while first.first + UInt64(lengths.count) < source.first { lengths.append(0) }
      let known = try self.lengths(source)
      guard UInt64(known.count) == source.last - source.first + 1 else {
        throw IndexKeys.damaged("the lengths of a full-text index")
      }
      lengths += known
    }
    for document in live where document - first.first < UInt64(lengths.count) {
      segment.documents += 1
      segment.words += DocumentLength.length(lengths[Int(document - first.first)])
    }
    try writer.finish(lengths: lengths)
    catalog.segments.replaceSubrange(start..<start + sources.count, with: [segment])
    catalog.lastNumber = segment.number
    try commit(catalog, takeovers)
    for source in sources { try remove(source.number, takeovers) }
    return true
  }

  /// The word that comes next in all readers, with its postings in the order of the readers, whose
  /// documents follow each other.
  private static func next(
    _ readers: inout [SegmentReader]
  ) throws(TidemarkError) -> (word: [UInt8], postings: Postings)? {
    var word: [UInt8]?
    for index in readers.indices {
      guard let next = try readers[index].peek() else { continue }
      if word.map({ next.word.lexicographicallyPrecedes($0) }) ?? true { word = next.word }
    }
    guard let word else { return nil }
    var postings = Postings()
    for index in readers.indices {
      guard let next = try readers[index].peek(), next.word == word else { continue }
      postings.documents += next.postings.documents
      postings.weights += next.postings.weights
      readers[index].drop()
    }
    return (word, postings)
  }

  private func liveDocuments(
    _ range: ClosedRange<UInt64>, _ view: EngineView
  ) throws(TidemarkError) -> Set<UInt64> {
    let terms = TermRange(
      lower: SearchKeys.term(range.lowerBound),
      upper: TermRange.end(of: SearchKeys.term(range.upperBound)))
    var scan = try RowScan(engine, number, terms, view: view)
    var live: Set<UInt64> = []
    while let row = try scan.nextRow() { live.insert(SearchKeys.document(row.term)) }
    return live
  }

  /// Commits a catalog, unless another process has had the store, or the index is gone.
  /// - Throws: `cancelled`.
  private func commit(_ catalog: SearchCatalog, _ takeovers: UInt64) throws(TidemarkError) {
    guard !state.withLock({ $0.isDropped }) else {
      throw TidemarkError(.cancelled, "the full-text index is gone")
    }
    var batch = OperationBatch()
    batch.takeovers = takeovers
    try batch.addDerived(SearchKeys.catalog(number).rawSpan, catalog.encoded.rawSpan)
    _ = try engine.stage(batch)
    let last = engine.reader.lastSequence
    state.withLock { state in
      guard engine.takeovers == takeovers else { return }
      state.catalog = catalog
      state.sequence = max(state.sequence, last)
      // The documents behind the segments are taken up anew.
      state.tail = Tail(through: catalog.through)
      state.isLoaded = true
      state.generation += 1
      state.lengths = state.lengths.filter { row in
        catalog.segments.contains { $0.number == row.key }
      }
    }
  }

  private func remove(_ segment: UInt32, _ takeovers: UInt64) throws(TidemarkError) {
    for prefix in [SearchKeys.blocks(number, segment), SearchKeys.lengths(number, segment)] {
      try engine.removeDerived(prefix, ifTakeovers: takeovers)
    }
  }

  /// Removes blocks of segments that the catalog does not name: a crash came before it did, or
  /// after.
  private func removeOrphans(_ takeovers: UInt64) throws(TidemarkError) {
    let named = Set(try Self.catalog(engine, number).segments.map(\.number))
    let prefix = SearchKeys.blocks(number)
    var from = prefix
    while let key = try engine.keys(
      from: from, through: TermRange.end(of: prefix) ?? prefix, limit: 1
    ).first, key.starts(with: prefix), key.count >= prefix.count + 4 {
      let segment = key[prefix.count..<prefix.count + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      if !named.contains(segment) { try remove(segment, takeovers) }
      guard let next = TermRange.end(of: Array(key.prefix(prefix.count + 4))) else { return }
      from = next
    }
  }
}
