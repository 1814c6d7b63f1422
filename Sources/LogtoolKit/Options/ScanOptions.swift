internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Which keys are listed, in which order, and what of them.
struct ScanOptions: ParsableArguments {
  enum Order: String, ExpressibleByArgument, CaseIterable {
    case key, time, sequence

    var order: ScanQuery.Order {
      switch self {
      case .key: .key
      case .time: .time
      case .sequence: .sequence
      }
    }
  }

  @Option(help: "Keys that begin with this.")
  var prefix: String?

  @Option(help: "Keys from this one on.")
  var from: String?

  @Option(help: "Keys before this one.")
  var to: String?

  @OptionGroup var labels: LabelOptions

  @Option(help: "The order: key, time (the entries' own) or sequence.")
  var order = Order.key

  @Flag(help: "The other way round.")
  var reverse = false

  @Option(
    parsing: .unconditional, help: "So many keys at most.", transform: NumberText.positive)
  var limit: Int?

  @Option(help: "Go on behind the cursor that an earlier scan ended with.")
  var after: String?

  @Flag(name: .customLong("keys"), help: "Keys only, one a line.")
  var keysOnly = false

  @Flag(
    help: "Cached entries only: valid or stale, age in seconds, reads, time of the last one.")
  var cache = false

  @Flag(help: "Values, too.")
  var values = false

  @Flag(
    name: [.customShort("0"), .customLong("null")], help: "End lines of text with NUL bytes.")
  var endsWithNUL = false

  @OptionGroup var keys: KeyOptions

  func validate() throws {
    if cache, keysOnly || values {
      throw ValidationError("--cache excludes --keys and --values")
    }
    if keysOnly && values { throw ValidationError("--keys and --values exclude each other") }
  }

  func query() throws(ToolError) -> ScanQuery {
    var query = ScanQuery()
    let prefix = try self.prefix.map { (text) throws(ToolError) in try keys.bytes(text, "prefix") }
    let from = try self.from.map { (text) throws(ToolError) in try keys.bytes(text, "bound") }
    let to = try self.to.map { (text) throws(ToolError) in try keys.bytes(text, "bound") }
    if let lower = Self.greater(prefix, from), !lower.isEmpty { query.from = .including(lower) }
    var upper = to
    if let prefix, case .excluding(let end) = KeyBound.afterPrefix(prefix) {
      if let bound = to, bound.lexicographicallyPrecedes(end) { upper = bound } else { upper = end }
    }
    if let upper { query.upTo = .excluding(upper) }
    query.labels = try labels.query()
    query.order = order.order
    query.descending = reverse
    return query
  }

  func position() throws(ToolError) -> ScanPosition {
    guard let after else { return .start }
    guard let position = ScanPosition(cursor: after), position.fits(order.order) else {
      throw ToolError(.usage, "--after is no cursor of a scan in this order; copy it whole")
    }
    return position
  }

  private static func greater(_ a: [UInt8]?, _ b: [UInt8]?) -> [UInt8]? {
    guard let a, let b else { return a ?? b }
    return a.lexicographicallyPrecedes(b) ? b : a
  }
}

extension ScanPosition {
  /// As text for the command line: base64 of the order's letter and the place.
  var cursor: String {
    let bytes: [UInt8]
    switch self {
    case .start: return ""
    case .key(let key): bytes = Array("k".utf8) + key
    case .sequence(let sequence): bytes = Array("s\(sequence)".utf8)
    case .time(let time, let sequence):
      bytes = Array("t\(time.seconds) \(time.nanoseconds) \(sequence)".utf8)
    }
    return bytes.base64
  }

  init?(cursor: String) {
    guard let bytes = Base64.decode(Array(cursor.utf8).rawSpan), let letter = bytes.first else {
      return nil
    }
    let rest = Array(bytes.dropFirst())
    let fields = String(decoding: rest, as: UTF8.self).split(separator: " ")
    switch letter {
    case UInt8(ascii: "k"):
      self = .key(rest)
    case UInt8(ascii: "s"):
      guard fields.count == 1, let sequence = UInt64(fields[0]) else { return nil }
      self = .sequence(sequence)
    case UInt8(ascii: "t"):
      guard fields.count == 3, let seconds = Int64(fields[0]), let nanoseconds = UInt32(fields[1]),
        let sequence = UInt64(fields[2])
      else { return nil }
      self = .time(Timestamp(seconds: seconds, nanoseconds: nanoseconds), sequence)
    default: return nil
    }
  }

  /// Whether it can come from a scan in this order.
  func fits(_ order: ScanQuery.Order) -> Bool {
    switch self {
    case .start: true
    case .key: order == .key
    case .sequence: order == .sequence
    case .time: order == .time
    }
  }
}
