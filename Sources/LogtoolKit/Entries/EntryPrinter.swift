internal import Tidemark
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
  static func labels(_ entry: Entry) -> [UInt8] {
    Array(entry.labels.map(\.bytes).joined(separator: Array(",".utf8)))
  }

  /// Labels as JSON: those that are no text in a list of their own, which is there only then.
  private static func labels(_ labels: [EntryLabel]) -> [JSONValue.Member] {
    var texts: [JSONValue] = []
    var others: [JSONValue] = []
    for label in labels {
      if let text = String(validating: label.bytes, as: UTF8.self) {
        texts.append(.string(text))
      } else {
        others.append(.string(label.bytes.base64))
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
    _ entry: Entry, namesOperation names: Bool = false, values: Bool
  ) -> JSONValue {
    var members: [JSONValue.Member] = [
      .bytes("key", entry.key.bytes), .init("sequence", .unsigned(entry.sequence)),
    ]
    if names { members.append(.init("op", .string(entry.kind.name))) }
    members.append(.time("committed", entry.committed))
    if let time = entry.time { members.append(.time("time", time)) }
    if !entry.kind.removes {
      members.append(.init("size", .integer(entry.valueLength)))
      members += labels(entry.labels)
    }
    if let hash = entry.hash { members.append(.bytes("hash", hash)) }
    if let age = entry.maxAgeSeconds { members.append(.init("max_age", .integer(Int(age)))) }
    if let attachment = entry.attachment, !entry.kind.removes {
      members.append(.init("attachment", .string(attachment.engineID.text)))
    }
    if entry.storageClass == .cache { members.append(.init("class", .string("cache"))) }
    if let origin = entry.origin { members.append(.init("origin", .string(origin.text))) }
    if values, !entry.kind.removes { members.append(.bytes("value", entry.value)) }
    return .object(members)
  }
}

extension Entry {
  /// When it was committed.
  var committed: Timestamp { validated }
}

extension Entry.Kind {
  /// The operation's name in output.
  var name: String { "\(self)" }

  /// Whether the key is absent after it.
  var removes: Bool { self == .delete || self == .evict }
}

extension EntryOrigin {
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
