internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Writes one key.
struct PutCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "put",
    abstract: "Write a key; changes the store.",
    discussion: """
      Examples:
        logtool put S note/1 'buy milk' --label inbox --label 2026
        logtool put S photo/7 --value-file photo.jpg --hash 9f86d081
        generate | logtool put S report -
        logtool put S film/7 '{"title":"Dunes"}' --attach film.mp4
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var write: WriteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The key.")
  var key: String

  @Argument(help: "The value; - reads it from standard input.")
  var value: String?

  @Option(
    name: .customLong("value-file"), help: "The file that holds the value.", completion: .file())
  var valueFile: String?

  @Option(
    help: "A file whose content is kept beside the log, for what is too large for a value.",
    completion: .file())
  var attach: String?

  @Option(name: .customLong("label"), help: "A label; may be given up to 64 times.")
  var labels: [String] = []

  @Option(help: "The entry's own time, after RFC 3339.")
  var time: String?

  @Option(help: "The validator hash, up to 64 bytes, such as an ETag.")
  var hash: String?

  @Option(
    name: .customLong("max-age"), parsing: .unconditional,
    help: "Seconds for which the value counts as valid.", transform: NumberText.natural)
  var maxAge: UInt32?

  @Option(name: .customLong("class"), help: "owned (written here) or cache (may be evicted).")
  var storageClass = StorageClass.owned

  @Flag(name: .customLong("if-absent"), help: "Only when the key is not there.")
  var ifAbsent = false

  @Option(
    name: .customLong("if-sequence"), parsing: .unconditional,
    help: "Only when the key's newest entry has this sequence.", transform: NumberText.natural)
  var ifSequence: UInt64?

  enum StorageClass: String, ExpressibleByArgument, CaseIterable {
    case owned, cache
  }

  func validate() throws {
    let hasNone = value == nil && valueFile == nil
    if hasNone && attach == nil || value != nil && valueFile != nil {
      throw ValidationError("give the value, -, or --value-file FILE, and one of them only")
    }
    if ifAbsent, ifSequence != nil {
      throw ValidationError("--if-absent and --if-sequence exclude each other")
    }
  }

  func run(_ console: Console) throws {
    let key = try keys.key(self.key)
    let labels = try LabelOptions.labels(self.labels)
    var options = try options()
    let bytes = try content(console)
    let condition = ifAbsent ? .absent : ifSequence.map { WriteCondition.sequence($0) }
    do {
      try write.commit(to: StoreAccess(store, console), saying: "put") { store in
        if let attach { options.attachment = try store.blocking.attach(contentsOf: attach) }
        var batch = WriteBatch()
        try batch.put(key, bytes, labels: labels, options: options, if: condition)
        return batch
      }
    } catch let error as TidemarkError where error.code == .storeMissing {
      throw ToolError(.noStore, "\(error.message), or make an empty one: logtool create \(store)")
    }
  }

  private func options() throws(ToolError) -> PutOptions {
    var options = PutOptions()
    if let time {
      guard let time = Timestamp(rfc3339: time) else {
        throw ToolError(.usage, "--time must be after RFC 3339, such as 2026-09-01T08:30:00Z")
      }
      options.time = time
    }
    if let hash, !hash.isEmpty { options.hash = Array(hash.utf8) }
    options.maxAge = maxAge.map { .seconds($0) }
    if storageClass == .cache { options.storageClass = .cache }
    return options
  }

  private func content(_ console: Console) throws(ToolError) -> [UInt8] {
    if let valueFile {
      return try InputStream.open(valueFile).readAll(atMost: Limits.valueBytes)
    }
    if value == "-" { return try console.input().readAll(atMost: Limits.valueBytes) }
    return Array((value ?? "").utf8)
  }
}

/// How small writes are made.
struct WriteOptions: ParsableArguments {
  enum Level: String, ExpressibleByArgument, CaseIterable {
    case async, buffered, durable

    var durability: Durability {
      switch self {
      case .async: .async
      case .buffered: .buffered
      case .durable: .durable
      }
    }
  }

  @Option(
    help: "When the write is answered: async, buffered or durable. Closing syncs in any case.")
  var durability = Level.buffered

  /// Commits a batch and says which sequence it took.
  /// - Parameters:
  ///   - verb: what was done.
  ///   - make: makes the batch while nobody else can write.
  @discardableResult
  func commit(
    to store: StoreAccess, saying verb: String, _ make: (Store) throws -> WriteBatch
  ) throws -> WriteReceipt {
    let result = try store.write { store in
      try store.blocking.write(make(store), durability: durability.durability)
    }
    let console = store.console
    let last = result.sequences.last
    if console.settings.format == .text {
      if let last { console.say("\(verb) at sequence \(last)") }
    } else {
      let members: [JSONValue.Member] = [
        .init("applied", .integer(result.sequences.count)),
        .init("sequence", last.map { .unsigned($0) } ?? .null),
      ]
      try console.output.line(.object(members))
    }
    return result
  }
}
