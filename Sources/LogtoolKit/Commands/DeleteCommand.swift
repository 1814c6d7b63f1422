internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Deletes keys.
struct DeleteCommand: ToolCommand {
  private static let listBytes = 256 << 20

  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Delete keys; changes the store.",
    discussion: """
      Examples:
        logtool delete S note/1
        logtool delete S --prefix draft/ --label expired --dry-run
        logtool scan S --label expired --keys -0 | logtool delete S --keys-from - -0

      All keys go in one atomic batch; with --prefix and labels those that carry them all. Exit \
      status 1 when none was there. The history stays: see undo.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var write: WriteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The keys.")
  var key: [String] = []

  @Option(
    name: .customLong("keys-from"), help: "A file with keys, one a line; - is standard input.",
    completion: .file())
  var keysFrom: String?

  @Flag(
    name: [.customShort("0"), .customLong("null")],
    help: "The keys of the file end with NUL bytes, not with lines.")
  var endsWithNUL = false

  @Option(help: "Keys that begin with this.")
  var prefix: String?

  @OptionGroup var labels: LabelOptions

  @Flag(name: .customLong("dry-run"), help: "Only list the keys that would be deleted.")
  var isDryRun = false

  private var asksForMany: Bool {
    prefix != nil || !(labels.all + labels.any + labels.not).isEmpty
  }

  func validate() throws {
    guard asksForMany || !key.isEmpty || keysFrom != nil else {
      throw ValidationError("give a key, --keys-from FILE, --prefix or --label")
    }
    guard asksForMany else { return }
    guard key.isEmpty, keysFrom == nil else {
      throw ValidationError("give keys, or --prefix and labels, but not both")
    }
    // Such as comes from a variable of the shell that is not set.
    if prefix == "", (labels.all + labels.any).isEmpty {
      throw ValidationError("an empty prefix would delete every key; give a longer one, or labels")
    }
  }

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    let given = try asksForMany ? [] : wanted(console)
    let query = EntryQuery(
      prefix: try keys.bytes(prefix ?? "", "prefix"), labels: try labels.filter(), values: false)
    if isDryRun {
      return try access.read { store in
        try tellPresent(asksForMany ? try Self.keys(query, in: store) : given, store, console)
      }
    }
    let result = try write.commit(to: access, saying: "deleted") { store in
      if asksForMany { return try store.clearBatch(query) }
      var batch = WriteBatch()
      for key in given { try batch.delete(key) }
      return batch
    }
    guard !result.sequences.isEmpty else {
      throw ToolError(
        .failed,
        "nothing was deleted: "
          + (asksForMany ? "no key has what was asked for" : "the key is not in the store"))
    }
  }

  private static func keys(_ query: EntryQuery, in store: Store) throws -> [[UInt8]] {
    var rows = try store.keys(query)
    var found: [[UInt8]] = []
    while let key = try rows.next() { found.append(key.bytes) }
    return found
  }

  private func wanted(_ console: Console) throws(ToolError) -> [[UInt8]] {
    var result: [[UInt8]] = []
    for text in key { result.append(try keys.key(text)) }
    guard let keysFrom else { return result }
    let input = keysFrom == "-" ? try console.input() : try InputStream.open(keysFrom)
    let bytes = try input.readAll(atMost: Self.listBytes)
    for line in bytes.split(separator: endsWithNUL ? 0 : UInt8(ascii: "\n")) {
      if keys.isBase64 {
        result.append(try keys.key(String(decoding: line, as: UTF8.self)))
      } else {
        guard line.count <= Limits.keyBytes else {
          throw ToolError(
            .usage,
            "a key of \(input.name) has \(line.count) bytes; keys have 1 to "
              + "\(Limits.keyBytes) bytes")
        }
        result.append(Array(line))
      }
    }
    return result
  }

  private func tellPresent(_ chosen: [[UInt8]], _ store: Store, _ console: Console) throws {
    let printer = EntryPrinter(console: console, keys: keys.style)
    var list = try ListPrinter(console, "entries", empty: "none of the keys is there")
    for key in chosen where try store.contains(key) {
      try list.add {
        .object([.bytes("key", key)])
      } text: { () throws(ToolError) in
        try printer.appendKey(key)
      }
    }
    try list.end()
  }
}
