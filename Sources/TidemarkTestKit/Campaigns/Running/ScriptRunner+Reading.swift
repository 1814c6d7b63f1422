internal import TidemarkEngine

extension ScriptRunner {
  /// Carries out a step that only reads.
  mutating func look(_ step: ScriptStep) throws {
    countState()
    switch step {
    case .get(let key): try checkKey(key.bytes)
    case .scan(let query):
      try check(try rows(query, in: opened().reader.view()), query, at: nil, "scan")
    case .view(let point, let query):
      let sequence = sequence(point)
      var query = query
      if !unsureKeys(at: sequence).isEmpty { query.limit = nil }
      try check(
        try rows(query, in: opened().reader.view(at: sequence)), query, at: sequence, "view")
    case .holdView(let point): try hold(point)
    case .releaseView: try release()
    case .history(let key): try checkHistory(key.bytes)
    case .difference(let first, let second):
      for point in [first, second] {
        let sequence = sequence(point)
        try check(
          try rows(ModelQuery(), in: opened().reader.view(at: sequence)), ModelQuery(),
          at: sequence,
          "state")
      }
    case .entries(let point): try checkEntries(since: point)
    case .verify: try checkAll()
    default: throw ScriptViolation("a step that is not known: \(step.kind)")
    }
  }

  /// The number of labels whose keys are compared.
  private static let labelsChecked = 12

  /// Compares everything with the model.
  package mutating func checkAll() throws {
    countState()
    let engine = try opened()
    guard engine.reader.lastSequence == model.lastSequence else {
      throw ScriptViolation(
        "sequence \(engine.reader.lastSequence) instead of \(model.lastSequence)")
    }
    let count = try engine.reader.countKeys()
    guard count == model.count() else {
      throw ScriptViolation("\(count) keys instead of \(model.count())")
    }
    try check(try rows(ModelQuery(), in: engine.reader.view()), ModelQuery(), at: nil, "state")
    let labels = try engine.reader.labelCounts()
    let expected = model.labels()
    guard labels.map(\.label) == expected.map(\.label), labels.map(\.count) == expected.map(\.keys)
    else { throw ScriptViolation("labels are counted wrongly") }
    for label in expected.prefix(Self.labelsChecked) {
      var query = ModelQuery()
      query.all = [label.label]
      try check(
        try rows(query, in: engine.reader.view()), query, at: nil,
        "the label \(ModelStore.readable(label.label))")
    }
    for key in model.state().keys.sortedBytes() { try checkKey(key) }
  }

  private func check(
    _ rows: [ModelRow], _ query: ModelQuery, at sequence: UInt64?, _ what: String
  ) throws {
    let unsure = unsureKeys(at: sequence)
    if let problem = model.mismatch(of: rows, query, at: sequence, except: unsure) {
      throw ScriptViolation("\(what) at \(sequence ?? model.lastSequence): \(problem)")
    }
  }

  private func checkKey(_ key: [UInt8]) throws {
    let right = model.row(forKey: key)?.value
    let isRight = try opened().reader.withValue(forKey: key.rawSpan) {
      (value, _) throws(TidemarkError) in right.map { value.isEqual(to: $0.rawSpan) } ?? false
    }
    guard isRight ?? (right == nil) else {
      throw ScriptViolation("key \(ModelStore.readable(key)) reads wrongly")
    }
  }

  private func checkHistory(_ key: [UInt8]) throws {
    let passing = model.cachedKeys.contains(key) ? model.passingSequences() : []
    let all = model.history(ofKey: key).map(\.sequence)
    let expected = all.filter { !passing.contains($0) }
    let found = try opened().reader.history.versions(ofKey: key.rawSpan).map(\.sequence)
    // Compaction may keep more than it must, never less and nothing out of order.
    guard Set(found).isSuperset(of: expected.filter({ $0 > viewableFrom })),
      found == found.sorted(by: >),
      viewableFrom > 1 || Set(found).isSubset(of: all),
      viewableFrom > 1 || found.filter({ !passing.contains($0) }) == expected.reversed()
    else {
      throw ScriptViolation("history \(found) instead of \(expected.reversed().map { $0 })")
    }
  }

  private func checkEntries(since point: ScriptPoint) throws {
    let engine = try opened()
    let first = sequence(point)
    var cursor = LogCursor(engine.reader, from: first + 1, through: engine.reader.lastSequence)
    var expected = model.entries(since: first)[...]
    let passing = model.passingSequences()
    while let entry = try cursor.next() {
      let skipped = expected.prefix { candidate in
        candidate.sequence < entry.sequence && passing.contains(candidate.sequence)
      }
      expected.removeFirst(skipped.count)
      guard let wanted = expected.popFirst(), wanted.sequence == entry.sequence,
        wanted.key == entry.key
      else { throw ScriptViolation("entry \(entry.sequence) is not the one expected") }
    }
    expected.removeAll { passing.contains($0.sequence) }
    guard expected.isEmpty else {
      throw ScriptViolation("the log lacks entry \(expected.first?.sequence ?? 0)")
    }
  }

  /// The rows of a query as the engine gives them.
  func rows(_ query: ModelQuery, in view: EngineView) throws -> [ModelRow] {
    let reader = view.reader
    let scan = EngineScan(reader, Self.scanQuery(query), view: view)
    var rows: [ModelRow] = []
    while rows.count < query.limit ?? .max {
      let page = try scan.nextPage(limit: 16)
      if page.isEmpty { break }
      for row in page {
        let info = try reader.info(reader.entry(at: row.sequence))
        let value = try reader.withValue(of: row.sequence, isTouch: row.isTouch) {
          (value, _) throws(TidemarkError) in [UInt8](copying: value)
        }
        let found = ModelRow(
          key: row.key, value: value, labels: Set(info.labels), hash: info.attributes.hash ?? [],
          valueSequence: info.valueSequence, sequence: row.sequence)
        if query.prefix.isEmpty || found.key.starts(with: query.prefix) { rows.append(found) }
      }
    }
    return Array(rows.prefix(query.limit ?? .max))
  }

  private static func scanQuery(_ query: ModelQuery) -> ScanQuery {
    // A range in addition to a prefix is cut to the prefix by the caller of `rows`.
    var scan = ScanQuery(prefix: query.prefix)
    if let from = query.from, query.prefix.lexicographicallyPrecedes(from) {
      scan.from = .including(from)
    }
    if let until = query.until {
      let end: KeyBound = .excluding(until)
      if case .excluding(let prefixEnd) = scan.upTo {
        if until.lexicographicallyPrecedes(prefixEnd) { scan.upTo = end }
      } else {
        scan.upTo = end
      }
    }
    scan.labels = LabelQuery(
      all: query.all.sortedBytes(), any: query.any.sortedBytes(), not: query.none.sortedBytes())
    scan.order = query.order == .key ? .key : .sequence
    scan.descending = query.isReversed
    return scan
  }
}
