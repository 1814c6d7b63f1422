internal import TidemarkEngine

/// How entries are printed.
struct EntryPrinter {
  let console: Console
  var keys = KeyStyle()
  /// Ends a text line.
  var terminator = UInt8(ascii: "\n")

  /// A key as a line of text.
  func appendKey(_ key: [UInt8]) throws(ToolError) {
    console.output.bytes.append(contentsOf: keys.shown(key, on: console.output))
    console.output.bytes.append(terminator)
    try console.output.drain()
  }

  /// Fields as a line of text, with tabs between.
  func appendLine(key: [UInt8], before: [String] = [], after: [[UInt8]]) throws(ToolError) {
    let output = console.output
    for field in before {
      output.bytes.append(contentsOf: field.utf8)
      output.bytes.append(UInt8(ascii: "\t"))
    }
    output.bytes.append(contentsOf: keys.shown(key, on: output))
    for field in after {
      output.bytes.append(UInt8(ascii: "\t"))
      output.bytes.append(contentsOf: shown(field))
    }
    output.bytes.append(terminator)
    try output.drain()
  }

  /// Bytes as they are, or escaped for a terminal.
  func shown(_ bytes: [UInt8]) -> [UInt8] {
    console.output.isTerminal ? Array(HumanText.escaped(bytes).utf8) : bytes
  }

  /// The labels of an entry in one field.
  static func labels(_ info: EntryInfo) -> [UInt8] {
    Array(info.labels.joined(separator: Array(",".utf8)))
  }

  /// Labels as JSON: those that are no text in a list of their own, which is there only then.
  private static func labels(_ labels: [[UInt8]]) -> [JSONValue.Member] {
    var texts: [JSONValue] = []
    var others: [JSONValue] = []
    for label in labels {
      if let text = String(validating: label, as: UTF8.self) {
        texts.append(.string(text))
      } else {
        others.append(.string(label.base64))
      }
    }
    let members = [JSONValue.Member("labels", .array(texts))]
    return others.isEmpty ? members : members + [.init("labels_base64", .array(others))]
  }

  /// An entry as JSON.
  /// - Parameters:
  ///   - names: whether the operation is named, for histories.
  ///   - values: whether the value is printed.
  static func json(
    _ entry: LoadedEntry, namesOperation names: Bool = false, values: Bool
  ) -> JSONValue {
    let info = entry.info
    var members: [JSONValue.Member] = [
      .bytes("key", entry.key), .init("sequence", .unsigned(info.sequence)),
    ]
    if names { members.append(.init("op", .string(info.kind.name))) }
    members.append(.time("committed", HybridTime(info.commitTime).timestamp))
    let attributes = info.attributes
    if let time = attributes.time { members.append(.time("time", time)) }
    if !info.kind.removes {
      members.append(.init("size", .integer(info.valueLength)))
      members += labels(info.labels)
    }
    if let hash = attributes.hash { members.append(.bytes("hash", hash)) }
    if let maxAge = attributes.maxAge { members.append(.init("max_age", .integer(Int(maxAge)))) }
    if let attachment = attributes.attachment, !info.kind.removes {
      members.append(.init("attachment", .string(attachment.text)))
    }
    if attributes.entryClass == .cache { members.append(.init("class", .string("cache"))) }
    if let origin = attributes.origin {
      members.append(.init("origin", .string(origin.text)))
    }
    if values, !info.kind.removes { members.append(.bytes("value", entry.value)) }
    return .object(members)
  }
}

extension EntryKind {
  /// The operation's name in output.
  var name: String {
    switch self {
    case .put: "put"
    case .delete: "delete"
    case .touch: "touch"
    case .record: "record"
    case .evict: "evict"
    }
  }
}

extension EntryAttributes.Origin {
  /// The operation id: replica, dot, sequence.
  var text: String { "\(replica.hexadecimal).\(sequence)" }
}

/// Prints a list: an object around an array, one JSON value a line, or lines of text.
struct ListPrinter {
  private let console: Console
  private let name: String
  private let emptyWords: String
  private var count = 0

  /// - Parameters:
  ///   - name: of the array in the object.
  ///   - emptyWords: what a person is told when the list has nothing, as nothing at all could mean
  ///     anything; nil for "no" and the name.
  init(
    _ console: Console, _ name: String, empty emptyWords: String? = nil
  ) throws(ToolError) {
    self.console = console
    self.name = name
    self.emptyWords = emptyWords ?? "no \(name)"
    if console.settings.format == .json { try console.output.write("{\"\(name)\":[") }
  }

  /// Adds an element; only what is asked for is worked out.
  mutating func add(json: () -> JSONValue, text: () throws(ToolError) -> Void) throws(ToolError) {
    let output = console.output
    switch console.settings.format {
    case .text: try text()
    case .json:
      if count > 0 { output.bytes.append(UInt8(ascii: ",")) }
      output.bytes.append(UInt8(ascii: "\n"))
      output.append(json())
      try output.drain()
    case .jsonl:
      output.append(json())
      output.bytes.append(UInt8(ascii: "\n"))
      try output.drain()
    }
    count += 1
  }

  /// Ends the list. With `jsonl` a list of nothing is told as with `json`: output that is empty
  /// could as well be output that was lost.
  /// - Parameters:
  ///   - members: what else the object has.
  ///   - summarizes: whether they are told with `jsonl`, too, in a line behind the list.
  func end(_ members: [JSONValue.Member] = [], summarizes: Bool = false) throws(ToolError) {
    let output = console.output
    switch console.settings.format {
    case .text:
      if count == 0, !emptyWords.isEmpty, output.isTerminal { console.say(emptyWords) }
    case .json:
      output.bytes.append(contentsOf: (count > 0 ? "\n]" : "]").utf8)
      for member in members {
        output.bytes.append(contentsOf: ",\"\(member.name)\":".utf8)
        output.append(member.value)
      }
      try output.line("}")
    case .jsonl:
      if summarizes {
        try output.line(.object(members))
      } else if count == 0 {
        try output.line(.object([.init(name, .array([]))] + members))
      }
    }
  }
}
