/// A line of a script's text that cannot be read.
public struct ScriptError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of the invalid line, counted from 1.
  public var line: Int
  /// What is wrong with the line, in words.
  public var reason: String

  /// The number of the line and what is wrong with it.
  public var description: String { "line \(line): \(reason)" }
}

extension Script: CustomStringConvertible {
  /// The script as text with one step a line. Lines that begin with `#` are comments.
  public var description: String {
    "seed \(seed)\n" + steps.map { $0.description + "\n" }.joined()
  }

  /// Reads a script from its text.
  /// - Throws: ``ScriptError`` with the first invalid line.
  public init(parsing text: String) throws(ScriptError) {
    self.init(steps: [])
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      var words = ScriptWords(line, number: index + 1)
      guard let first = words.peek, !first.hasPrefix("#") else { continue }
      if first == "seed" {
        _ = try words.next()
        seed = try words.number()
      } else {
        steps.append(try ScriptStep(&words))
      }
      try words.end()
    }
  }
}

extension ScriptStep: CustomStringConvertible {
  /// The step as one line of a script's text.
  public var description: String {
    switch self {
    case .write(let write): "\(write)"
    case .batch(let writes): "batch " + writes.map(\.description).joined(separator: " ; ")
    case .compareAndPut(let write, let expectation): "if \(expectation.rawValue) \(write)"
    case .undo(let point): "undo \(point.permille)"
    case .powerCut(let seed): "powerCut \(seed)"
    case .durability(let durability): "durability \(durability.rawValue)"
    case .advanceClock(let milliseconds): "advanceClock \(milliseconds)"
    case .jumpClock(let seconds): "jumpClock \(seconds)"
    case .get(let key): "get \(key)"
    case .scan(let query): "scan\(query.script)"
    case .view(let point, let query): "view \(point.permille)\(query.script)"
    case .holdView(let point): "holdView \(point.permille)"
    case .history(let key): "history \(key)"
    case .difference(let a, let b): "difference \(a.permille) \(b.permille)"
    case .entries(let point): "entries \(point.permille)"
    default: kind.rawValue
    }
  }

  init(_ words: inout ScriptWords) throws(ScriptError) {
    let word = try words.next()
    if let operation = ModelEntry.Operation(rawValue: word) {
      self = .write(try ScriptWrite(operation, &words))
      return
    }
    if word == "if" {
      guard let expectation = ScriptExpectation(rawValue: try words.next()),
        try words.next() == ModelEntry.Operation.put.rawValue
      else { throw words.error("expects absent, current or outdated, and a put") }
      self = .compareAndPut(try ScriptWrite(.put, &words), expectation)
      return
    }
    guard let kind = Kind(rawValue: word) else { throw words.error("no such step: \(word)") }
    switch kind {
    case .batch: self = .batch(try Self.batch(&words))
    case .undo: self = .undo(since: try words.point())
    case .powerCut: self = .powerCut(try words.number())
    case .durability:
      guard let durability = ScriptDurability(rawValue: try words.next()) else {
        throw words.error("expects async, buffered or durable")
      }
      self = .durability(durability)
    case .advanceClock: self = .advanceClock(try words.number())
    case .jumpClock: self = .jumpClock(try words.number())
    case .get: self = .get(try words.bytes())
    case .scan: self = .scan(try ModelQuery(&words))
    case .view: self = .view(try words.point(), try ModelQuery(&words))
    case .holdView: self = .holdView(try words.point())
    case .history: self = .history(try words.bytes())
    case .difference: self = .difference(try words.point(), try words.point())
    case .entries: self = .entries(since: try words.point())
    default: self = try Self.plain(kind, words)
    }
  }

  /// A step without details.
  private static func plain(
    _ kind: Kind, _ words: ScriptWords
  ) throws(ScriptError) -> ScriptStep {
    switch kind {
    case .clear: return .clear
    case .flush: return .flush
    case .snapshot: return .snapshot
    case .compact: return .compact
    case .compactDroppingHistory: return .compactDroppingHistory
    case .loseRuns: return .loseRuns
    case .closeAndReopen: return .closeAndReopen
    case .kill: return .kill
    case .releaseView: return .releaseView
    case .verify: return .verify
    default: throw words.error("no such step: \(kind.rawValue)")
    }
  }

  private static func batch(_ words: inout ScriptWords) throws(ScriptError) -> [ScriptWrite] {
    var writes: [ScriptWrite] = []
    while words.peek != nil {
      guard let operation = ModelEntry.Operation(rawValue: try words.next()) else {
        throw words.error("expects put, delete or touch")
      }
      writes.append(try ScriptWrite(operation, &words))
      if words.peek == ";" { _ = try words.next() }
    }
    return writes
  }
}
