internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Which keys are listed, in which order, and what of them.
struct ScanOptions: ParsableArguments {
  enum Order: String, ExpressibleByArgument, CaseIterable {
    case key, time, sequence

    var order: EntryQuery.Order {
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

  @OptionGroup var library: LibraryKeyOptions

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

  /// The query without its limit: keys that are not shown do not count.
  func query() throws(ToolError) -> EntryQuery {
    EntryQuery(
      prefix: try bytes(prefix, "prefix") ?? [], from: try bytes(from, "bound").map { Key($0) },
      upTo: try bytes(to, "bound").map { Key($0) }, labels: try labels.filter(),
      order: order.order, descending: reverse, values: values)
  }

  func shows(_ key: Key, _ query: EntryQuery) -> Bool {
    library.shows(key.bytes, prefix: query.prefix.bytes)
  }

  private func bytes(_ text: String?, _ what: String) throws(ToolError) -> [UInt8]? {
    guard let text else { return nil }
    return try keys.bytes(text, what)
  }

  /// Where an earlier scan ended.
  func cursor() throws(ToolError) -> PageCursor? {
    guard let after else { return nil }
    guard let cursor = PageCursor(after), cursor.fits(order.order) else {
      throw ToolError(.usage, "--after is no cursor of a scan in this order; copy it whole")
    }
    return cursor
  }
}
