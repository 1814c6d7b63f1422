/// Makes up the steps of a ``Script`` from a seed, one after the other.
public struct ScriptGenerator: Sendable {
  private var generator: SeededGenerator
  private var keys: ScriptKeys
  private var labels: [ScriptBytes]
  /// The profile that decides which steps are frequent.
  public let profile: ScriptProfile
  private let choices: [(kind: ScriptStep.Kind, weight: Int)]
  private let totalWeight: Int

  /// Creates a generator of steps.
  /// - Parameters:
  ///   - seed: decides every step.
  ///   - profile: which steps are frequent; by default the seed picks a profile.
  public init(seed: UInt64, profile: ScriptProfile? = nil) {
    var generator = SeededGenerator(seed: seed)
    let picked = generator.pick(ScriptProfile.all) ?? .mixed
    let profile = profile ?? picked
    self.profile = profile
    choices = ScriptStep.Kind.allCases.map { ($0, max(0, profile.weights[$0] ?? 0)) }
    totalWeight = choices.reduce(0) { $0 + $1.weight }
    keys = ScriptKeys(profile.keys, count: profile.keyCount, &generator)
    labels = Self.labels(profile.labelCount, &generator)
    self.generator = generator
  }

  private static func labels(
    _ count: Int, _ generator: inout SeededGenerator
  ) -> [ScriptBytes] {
    (0..<max(0, count)).map { index in
      switch generator.int(below: 8) {
      case 0: .run(UInt8(index & 0xff), count: generator.int(in: 1...255))
      case 1: ScriptBytes("é\(index)")
      case 2: .literal([0, UInt8(index & 0xff), 0xff])
      default: ScriptBytes("label:\(index)")
      }
    }
  }

  /// Returns the next step of the script.
  public mutating func next() -> ScriptStep {
    switch pickKind() {
    case .put: .write(write(.put))
    case .cache: .write(write(.cache))
    case .evict: .write(write(.evict))
    case .delete: .write(write(.delete))
    case .touch: .write(write(.touch))
    case .batch: .batch(batch())
    case .compareAndPut:
      .compareAndPut(write(.put), generator.pick(ScriptExpectation.allCases) ?? .current)
    case .undo: .undo(since: point())
    case .clear: .clear
    case .flush: .flush
    case .snapshot: .snapshot
    case .compact: .compact
    case .compactDroppingHistory: .compactDroppingHistory
    case .loseRuns: .loseRuns
    case .closeAndReopen: .closeAndReopen
    case .kill: .kill
    case .powerCut: .powerCut(generator.next())
    case .durability: .durability(generator.pick(ScriptDurability.allCases) ?? .buffered)
    case .advanceClock: .advanceClock(generator.pick([1, 40, 60, 900, 1500, 60_000]) ?? 1)
    case .jumpClock: .jumpClock(generator.pick([-86_400, -5, -1, 1, 3600, 40_000_000]) ?? 1)
    case .get: .get(keys.any(&generator))
    case .scan: .scan(query())
    case .view: .view(point(), query())
    case .holdView: .holdView(point())
    case .releaseView: .releaseView
    case .history: .history(keys.any(&generator))
    case .difference: .difference(point(), point())
    case .entries: .entries(since: point())
    case .verify: .verify
    }
  }

  private mutating func pickKind() -> ScriptStep.Kind {
    var left = generator.int(below: totalWeight)
    for choice in choices {
      if left < choice.weight { return choice.kind }
      left -= choice.weight
    }
    return .put
  }

  private mutating func point() -> ScriptPoint {
    // The ends are where mistakes by one show.
    switch generator.int(below: 6) {
    case 0: ScriptPoint(permille: 0)
    case 1: ScriptPoint(permille: 1000)
    case 2: ScriptPoint(permille: generator.int(in: 950...1000))
    default: ScriptPoint(permille: generator.int(in: 0...1000))
    }
  }

  private mutating func batch() -> [ScriptWrite] {
    (0..<generator.int(in: 1...max(1, profile.batchCount))).map { _ in
      if profile.weights[.cache] ?? 0 > 0, generator.chance(0.5) {
        return write(generator.chance(0.7) ? .cache : .evict)
      }
      return switch generator.int(below: 10) {
      case 0...5: write(.put)
      case 6...8: write(.delete)
      default: write(.touch)
      }
    }
  }

  private mutating func write(_ operation: ModelEntry.Operation) -> ScriptWrite {
    let key = keys.any(&generator)
    guard operation.givesValue else { return ScriptWrite(operation, key) }
    var count = generator.int(in: 0...max(0, profile.labelsPerEntry))
    if generator.chance(0.02) { count = 64 }
    var chosen: [ScriptBytes] = []
    for _ in 0..<count {
      if let label = generator.pick(labels), !chosen.contains(label) { chosen.append(label) }
    }
    let hash: ScriptBytes =
      generator.chance(0.3)
      ? .noise(seed: generator.next() % 1000, count: generator.int(in: 1...64)) : .literal([])
    return ScriptWrite(operation, key, value(), labels: chosen, hash: hash)
  }

  // MARK: Values

  private mutating func value() -> ScriptBytes {
    let count = min(valueCount(profile.values), profile.maximumValueBytes)
    if count <= 4 { return .literal(generator.bytes(count)) }
    switch generator.int(below: 5) {
    case 0: return .run(UInt8(generator.int(below: 256)), count: count)
    case 1, 2: return .noise(seed: generator.next() % 100_000, count: count)
    default: return .words(seed: generator.next() % 100_000, count: count)
    }
  }

  private mutating func valueCount(_ style: ScriptProfile.Values) -> Int {
    switch style {
    case .tiny: return generator.int(in: 0...8)
    case .records: return generator.int(in: 20...600)
    case .borders:
      let border = generator.pick([256, 4096, 16_384, 32_768, 65_536]) ?? 4096
      return border + generator.int(in: -2...2)
    case .large: return generator.int(in: 16_000...max(16_000, profile.maximumValueBytes))
    case .mixed:
      switch generator.int(below: 100) {
      case 0..<30: return valueCount(.tiny)
      case 30..<90: return valueCount(.records)
      case 90..<98: return valueCount(.borders)
      default: return valueCount(.large)
      }
    }
  }

  // MARK: Queries

  private mutating func query() -> ModelQuery {
    var query = ModelQuery()
    switch generator.int(below: 5) {
    case 0:
      let key = keys.any(&generator).bytes
      query.prefix = Array(key.prefix(generator.int(in: 0...min(key.count, 40))))
    case 1: query.from = keys.any(&generator).bytes
    case 2: query.until = keys.any(&generator).bytes
    case 3:
      query.from = keys.any(&generator).bytes
      query.until = keys.any(&generator).bytes
    default: break
    }
    if generator.chance(0.3) { query.all = someLabels() }
    if generator.chance(0.2) { query.any = someLabels() }
    if generator.chance(0.2) { query.none = someLabels() }
    if generator.chance(0.2) { query.order = .sequence }
    query.isReversed = generator.chance(0.4)
    if generator.chance(0.3) { query.limit = generator.int(in: 0...10) }
    return query
  }

  private mutating func someLabels() -> Set<[UInt8]> {
    var result: Set<[UInt8]> = []
    for _ in 0..<generator.int(in: 1...3) {
      // Now and then one that no entry carries.
      let label = generator.chance(0.1) ? ScriptBytes("nobody") : generator.pick(labels)
      if let label { result.insert(label.bytes) }
    }
    return result
  }
}
