internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON
internal import TidemarkSync

/// Tells what is not synced.
struct PendingCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "pending",
    abstract: "Tell what is not synced: how much, how old, and which entries.",
    discussion: """
      Examples:
        logtool pending S
        logtool pending S --peer https://sync.example.org/notes --list
        logtool pending S --label inbox --json
        logtool pending S --export unsynced.ndjson

      What counts is own data whose newest entry no peer has decided on: each key once. What came \
      from a peer does not count, nor does a key that was put and deleted before anybody heard of \
      it. Entries that a peer has refused, or that the user is to decide, are told apart. Without \
      --peer: what at least one of the store's peers lacks, and what each of several does; with \
      no peer, everything that is owned.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(help: "What the store knows the peer by; see logtool peers.")
  var peer: String?

  @Flag(help: "List the entries: key, sequence, what it does, and how far it is.")
  var list = false

  @Option(help: "Only entries with this label.")
  var label: String?

  @Option(
    help: "Write the entries to this file as import takes them; - is the standard output.",
    completion: .file())
  var export: String?

  func validate() throws {
    if list, export != nil { throw ValidationError("--list and --export exclude each other") }
  }

  private static let page = 1000
  private static let flushBytes = 128 << 10

  func run(_ console: Console) throws {
    let label = try self.label.map { try LabelOptions.labels([$0]) }?.first
    try StoreAccess(store, console).read { store in
      if let export { return try write(store, label, to: export, console) }
      if list { return try printList(store, label, console) }
      if let label { return try tell(store, label, console) }
      try tell(store, console)
    }
  }

  /// Calls `body` with every pending entry.
  private func each(
    _ store: Store, _ label: EntryLabel?, _ body: (PendingEntry) throws -> Void
  ) throws {
    var after: UInt64? = 0
    while let start = after {
      let page = try store.blocking.pendingEntries(
        for: peer, label: label, after: start, limit: Self.page)
      for entry in page.entries { try body(entry) }
      after = page.next
    }
  }

  // MARK: Counts

  private func tell(_ store: Store, _ console: Console) throws {
    let summary = try store.blocking.pending(for: peer)
    let names = try store.blocking.peers().map(\.name)
    let isOne = peer != nil || names.count <= 1
    let labels = isOne ? try store.blocking.pendingByLabel(for: peer) : [:]
    var byPeer: [(name: String, summary: PendingSummary)] = []
    for name in isOne ? [] : names {
      byPeer.append((name, try store.blocking.pending(for: name)))
    }
    if console.settings.format == .text {
      try console.output.line(Self.text(summary))
      for (name, summary) in byPeer {
        let shown = HumanText.escaped(Array(name.utf8), keepingBackslashes: true)
        try console.output.line("  \(shown)  \(Self.text(summary))")
      }
      for (label, count) in labels.sorted(by: { $0.key < $1.key }) {
        let shown = HumanText.escaped(label.bytes)
        try console.output.line("  \(shown)  \(HumanText.count(count))")
      }
      return
    }
    let members: [JSONValue.Member] = [
      .init("entries", .integer(summary.entries)), .init("bytes", .integer(summary.bytes)),
      .init("oldest", .optional(summary.oldest?.text)),
      .init("in_flight", .integer(summary.inFlight)), .init("parked", .integer(summary.parked)),
      .init("to_decide", .integer(summary.needsDecision)),
      .init("peers", .array((peer.map { [$0] } ?? names).map { .string($0) })),
      .init(
        "by_peer",
        .array(
          byPeer.map { name, summary in
            .object([
              .init("peer", .string(name)), .init("entries", .integer(summary.entries)),
              .init("bytes", .integer(summary.bytes)),
              .init("parked", .integer(summary.parked)),
              .init("to_decide", .integer(summary.needsDecision)),
            ])
          })),
      .init(
        "labels",
        .array(
          labels.sorted(by: { $0.key < $1.key }).map { label, count in
            .object([.bytes("label", label.bytes), .init("entries", .integer(count))])
          })),
    ]
    try console.output.line(.object(members))
  }

  static func text(_ summary: PendingSummary) -> String {
    guard !summary.isEmpty else { return "nothing is pending" }
    var text = "\(HumanText.count(summary.entries, "entry", "entries")), "
    text += HumanText.size(summary.bytes)
    if let oldest = summary.oldest { text += ", the oldest of \(oldest.text)" }
    if summary.inFlight > 0 { text += "; \(HumanText.count(summary.inFlight)) under way" }
    if summary.parked > 0 { text += "; \(HumanText.count(summary.parked)) refused" }
    if summary.needsDecision > 0 {
      text += "; \(HumanText.count(summary.needsDecision)) to be decided"
    }
    return text
  }

  private func tell(_ store: Store, _ label: EntryLabel, _ console: Console) throws {
    var summary = PendingSummary()
    try each(store, label) { entry in
      switch entry.state {
      case .parked: summary.parked += 1
      case .needsDecision: summary.needsDecision += 1
      case .pending, .inFlight, .conflict, .blocked:
        summary.entries += 1
        summary.bytes += entry.bytes
        if entry.state == .inFlight { summary.inFlight += 1 }
        summary.oldest = summary.oldest ?? entry.commitTime
      }
    }
    if console.settings.format == .text { return try console.output.line(Self.text(summary)) }
    try console.output.line(
      .object([
        .init("entries", .integer(summary.entries)), .init("bytes", .integer(summary.bytes)),
        .init("oldest", .optional(summary.oldest?.text)),
        .init("in_flight", .integer(summary.inFlight)),
        .init("parked", .integer(summary.parked)),
        .init("to_decide", .integer(summary.needsDecision)),
        .bytes("label", label.bytes),
      ]))
  }

  // MARK: Lists

  private func printList(_ store: Store, _ label: EntryLabel?, _ console: Console) throws {
    let printer = EntryPrinter(console: console, keys: keys.style)
    var list = try ListPrinter(console, "entries", empty: "nothing is pending")
    try each(store, label) { entry in
      try list.add {
        Self.json(entry)
      } text: { () throws(ToolError) in
        try printer.appendLine(
          key: entry.key.bytes,
          after: [
            Array(String(entry.sequence).utf8), Array("\(entry.kind)".utf8),
            Array(entry.state.name.utf8),
          ])
      }
    }
    try list.end()
  }

  private static func json(_ entry: PendingEntry) -> JSONValue {
    var members: [JSONValue.Member] = [
      .bytes("key", entry.key.bytes), .init("sequence", .unsigned(entry.sequence)),
      .init("op", .string("\(entry.kind)")), .init("bytes", .integer(entry.bytes)),
      .time("committed", entry.commitTime), .init("state", .string(entry.state.name)),
    ]
    if case .parked(let rejection) = entry.state {
      members.append(.init("code", .string(rejection.code)))
      members.append(.init("reason", .string(rejection.message)))
    }
    return .object(members)
  }

  private func write(
    _ store: Store, _ label: EntryLabel?, to path: String, _ console: Console
  ) throws {
    let file = path == "-" ? nil : try OutputFile(path)
    func flush(_ writer: inout NDJSONWriter) throws(ToolError) {
      if let file {
        try file.write(writer.bytes.rawSpan)
      } else {
        try console.output.write(json: writer.bytes)
      }
      writer.bytes.removeAll(keepingCapacity: true)
    }
    var writer = NDJSONWriter(capacity: 2 * Self.flushBytes)
    var count = 0
    try each(store, label) { entry in
      guard let change = try store.history(ofSequence: entry.sequence) else { return }
      let (key, value, hash) = (entry.key.bytes, change.value, change.attributes.hash ?? [])
      writer.append(
        NDJSONWriter.Header(
          entry.kind == .put ? .put : .delete, attributes: change.attributes),
        key: key.rawSpan, value: value.rawSpan, hash: hash.rawSpan,
        labels: entry.labels.map(\.bytes))
      count += 1
      if writer.bytes.count >= Self.flushBytes { try flush(&writer) }
    }
    try flush(&writer)
    console.say("exported \(HumanText.count(count, "entry", "entries"))")
  }
}

extension PendingState {
  /// The state's name in output.
  var name: String {
    switch self {
    case .pending: "pending"
    case .inFlight: "in_flight"
    case .conflict: "conflict"
    case .parked: "parked"
    case .needsDecision: "to_decide"
    case .blocked: "blocked"
    }
  }
}

extension Store {
  /// The entry at a sequence, with its value.
  fileprivate func history(
    ofSequence sequence: UInt64
  ) throws(TidemarkError) -> (attributes: EntryAttributes, value: [UInt8])? {
    guard let entry = try engine.reader.entryIfKept(at: sequence) else { return nil }
    guard entry.head.kind == .put else { return (try entry.attributes(), []) }
    let value = try engine.reader.withValue(of: sequence) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
    return (try entry.attributes(), value)
  }
}
