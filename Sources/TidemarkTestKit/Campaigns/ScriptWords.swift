/// The words of one line of a script's text.
struct ScriptWords {
  /// More bytes than any key or value has.
  private static let maximumCount = 64 << 20

  private var words: ArraySlice<Substring>
  private let line: Int

  init(_ line: Substring, number: Int) {
    words = line.split(separator: " ")[...]
    self.line = number
  }

  var peek: String? { words.first.map(String.init) }

  func error(_ reason: String) -> ScriptError { ScriptError(line: line, reason: reason) }

  func end() throws(ScriptError) {
    if let word = words.first { throw error("\(word) is too much") }
  }

  mutating func next() throws(ScriptError) -> String {
    guard let word = words.popFirst() else { throw error("ends too early") }
    return String(word)
  }

  mutating func number<N: FixedWidthInteger>() throws(ScriptError) -> N {
    let word = try next()
    guard let number = N(word) else { throw error("\(word) is no number") }
    return number
  }

  mutating func point() throws(ScriptError) -> ScriptPoint { ScriptPoint(permille: try number()) }

  mutating func bytes() throws(ScriptError) -> ScriptBytes { try bytes(try next()) }

  /// Bytes as written: `t:text`, `x:hex`, `r:byte*count`, `n:seed*count`, `w:seed*count`.
  func bytes(_ word: String) throws(ScriptError) -> ScriptBytes {
    let rest = word.dropFirst(2)
    let factors = rest.split(separator: "*", omittingEmptySubsequences: false)
    switch word.prefix(2) {
    case "t:": return .literal(Array(rest.utf8))
    case "x:": return .literal(try hex(rest))
    case "r:", "n:", "w:":
      guard factors.count == 2, let seed = UInt64(factors[0]), let count = Int(factors[1]),
        (0...Self.maximumCount).contains(count)
      else { throw error("\(word): expects a number, a star and a count") }
      if word.hasPrefix("n") { return .noise(seed: seed, count: count) }
      if word.hasPrefix("w") { return .words(seed: seed, count: count) }
      return .run(UInt8(truncatingIfNeeded: seed), count: count)
    default: throw error("\(word): expects t:, x:, r:, n: or w:")
    }
  }

  private func hex(_ text: Substring) throws(ScriptError) -> [UInt8] {
    let digits = Array(text)
    guard digits.count % 2 == 0 else { throw error("half a byte") }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = UInt8(String(digits[index...(index + 1)]), radix: 16) else {
        throw error("not in hex: \(text)")
      }
      bytes.append(byte)
    }
    return bytes
  }
}

extension ScriptBytes: CustomStringConvertible {
  /// The bytes as they stand in a script's text.
  public var description: String {
    switch self {
    case .literal(let bytes):
      if bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) {
        return "t:" + String(decoding: bytes, as: UTF8.self)
      }
      return "x:"
        + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    case .run(let byte, let count): return "r:\(byte)*\(count)"
    case .noise(let seed, let count): return "n:\(seed)*\(count)"
    case .words(let seed, let count): return "w:\(seed)*\(count)"
    }
  }
}

extension ScriptWrite: CustomStringConvertible {
  /// The write as it stands in a script's text.
  public var description: String {
    var text = "\(operation.rawValue) \(key)"
    if operation.givesValue { text += " \(value)" }
    for label in labels { text += " label=\(label)" }
    if hash.count > 0 { text += " hash=\(hash)" }
    return text
  }

  init(_ operation: ModelEntry.Operation, _ words: inout ScriptWords) throws(ScriptError) {
    self.init(operation, try words.bytes())
    guard operation.givesValue else { return }
    value = try words.bytes()
    while let word = words.peek, word != ";" {
      _ = try words.next()
      if word.hasPrefix("label=") {
        labels.append(try words.bytes(String(word.dropFirst(6))))
      } else if word.hasPrefix("hash=") {
        hash = try words.bytes(String(word.dropFirst(5)))
      } else {
        throw words.error("\(word): expects label= or hash=")
      }
    }
  }
}

extension ModelQuery {
  /// The conditions as a script's text has them, each after a space.
  var script: String {
    var text = ""
    func add(_ name: String, _ bytes: [UInt8]) { text += " \(name)=\(ScriptBytes(compact: bytes))" }
    func add(_ name: String, _ labels: Set<[UInt8]>) {
      for label in labels.sorted(by: { $0.lexicographicallyPrecedes($1) }) { add(name, label) }
    }
    if !prefix.isEmpty { add("prefix", prefix) }
    if let from { add("from", from) }
    if let until { add("until", until) }
    add("all", all)
    add("any", any)
    add("none", none)
    if order != .key { text += " order=\(order.rawValue)" }
    if isReversed { text += " reversed" }
    if let limit { text += " limit=\(limit)" }
    return text
  }

  init(_ words: inout ScriptWords) throws(ScriptError) {
    self.init()
    while words.peek != nil {
      let word = try words.next()
      let parts = word.split(separator: "=", maxSplits: 1)
      let text = parts.count == 2 ? String(parts[1]) : ""
      switch parts.first {
      case "prefix": prefix = try words.bytes(text).bytes
      case "from": from = try words.bytes(text).bytes
      case "until": until = try words.bytes(text).bytes
      case "all": all.insert(try words.bytes(text).bytes)
      case "any": any.insert(try words.bytes(text).bytes)
      case "none": none.insert(try words.bytes(text).bytes)
      case "reversed": isReversed = true
      case "order":
        guard let order = Order(rawValue: text) else { throw words.error("no order: \(text)") }
        self.order = order
      case "limit":
        guard let limit = Int(text), limit >= 0 else { throw words.error("no limit: \(text)") }
        self.limit = limit
      default: throw words.error("no condition: \(word)")
      }
    }
  }
}
