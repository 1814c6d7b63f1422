internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Tells what a store keeps of a server's data, and gives some of it up.
struct CacheCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Tell what is cached, what makes room next, and give cached entries up.",
    discussion: """
      Examples:
        logtool cache S
        logtool cache S --prefix articles/ --limit 10    # the next to make room
        logtool cache S --prefix articles/ --evict 42 --evict 43
        logtool cache S --prefix articles/ --expire --dry-run

      Without --prefix it tells of each cache its rules, how full it is, how often it was asked \
      with what success, and the oldest use. A cache is known once it was used and its store \
      closed. Keys are without the prefix. The user's own entries are never given up.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Option(help: "The prefix of one cache.")
  var prefix: String?

  @Option(
    parsing: .unconditional, help: "So many entries at most, 20 unless it is given.",
    transform: NumberText.positive)
  var limit: Int?

  @Option(help: ArgumentHelp("Give this entry up; may be repeated.", valueName: "key"))
  var evict: [String] = []

  @Flag(name: .customLong("evict-all"), help: "Give all entries up.")
  var evictsAll = false

  @Flag(help: "Give up the entries that are valid no more.")
  var expire = false

  @Flag(name: .customLong("dry-run"), help: "Only say how many would go.")
  var isDryRun = false

  private var writes: Bool { !evict.isEmpty || evictsAll || expire }

  func validate() throws {
    if [!evict.isEmpty, evictsAll, expire].count(where: { $0 }) > 1 {
      throw ValidationError("give one of --evict, --evict-all and --expire")
    }
    if writes, prefix == nil { throw ValidationError("say which cache: --prefix") }
    if limit != nil, prefix == nil || writes {
      throw ValidationError("--limit goes with a list of entries: give --prefix alone")
    }
    if isDryRun, !writes {
      throw ValidationError("--dry-run goes with --evict, --evict-all or --expire")
    }
  }

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    let prefix = try self.prefix.map { (text) throws(ToolError) in try keys.key(text) }
    guard let prefix else {
      return try access.read { try CacheOutput(console).print($0.knownCaches()) }
    }
    guard writes else {
      return try access.read { store in
        let entries = try cache(prefix, in: store).leastRecentlyUsed(limit: limit ?? 20)
        try CacheOutput(console, keys.style).print(entries)
      }
    }
    let names = try evict.map { (text) throws(ToolError) in Key(try keys.key(text)) }
    let gone: Int
    if isDryRun {
      gone = try access.read { try chosen(names, of: cache(prefix, in: $0)).count }
    } else {
      gone = try access.write { store in
        let cache = try cache(prefix, in: store)
        return try cache.blocking.remove(keys: chosen(names, of: cache))
      }
    }
    try tell(gone, names, console)
  }

  private func tell(_ gone: Int, _ names: [Key], _ console: Console) throws {
    if console.settings.format == .text {
      let count = HumanText.count(gone, "entry", "entries")
      console.say(isDryRun ? "would give up \(count)" : "gave up \(count)")
    } else {
      try console.output.line(
        .object([.init("dry_run", .bool(isDryRun)), .init("evicted", .integer(gone))]))
    }
    if !names.isEmpty, gone == 0 {
      throw ToolError(.failed, "none of these keys is cached; see logtool cache --prefix")
    }
  }

  /// A cache that the store knows; its rules stay as they are.
  private func cache(_ prefix: [UInt8], in store: Store) throws -> Cache<[UInt8]> {
    guard let known = try store.knownCaches().first(where: { $0.prefix.bytes == prefix }) else {
      throw ToolError(.failed, "the store knows no cache of that prefix; see logtool cache")
    }
    return try store.cache(prefix: prefix, policy: known.status.policy)
  }

  private func chosen(_ names: [Key], of cache: Cache<[UInt8]>) throws -> [Key] {
    if !names.isEmpty {
      return try names.filter { try cache.contains($0) }
    }
    return try cache.leastRecentlyUsed(limit: .max).filter { evictsAll || !$0.isValid }.map(\.key)
  }
}
