internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// How keys are given and printed.
struct KeyOptions: ParsableArguments {
  @Flag(name: .customLong("key-base64"), help: "Keys are given, and printed as text, in base64.")
  var isBase64 = false

  /// The bytes of a key that was given on the command line.
  func key(_ text: String) throws(ToolError) -> [UInt8] {
    let bytes = try self.bytes(text, "key")
    guard !bytes.isEmpty else {
      throw ToolError(.usage, "the key is empty; keys have 1 to \(Limits.keyBytes) bytes")
    }
    guard bytes.count <= Limits.keyBytes else {
      throw ToolError(
        .usage, "the key has \(bytes.count) bytes; keys have 1 to \(Limits.keyBytes) bytes")
    }
    return bytes
  }

  /// The bytes of a prefix or bound, which may be empty.
  func bytes(_ text: String, _ what: String) throws(ToolError) -> [UInt8] {
    guard isBase64 else { return Array(text.utf8) }
    guard let bytes = Base64.decode(Array(text.utf8).rawSpan) else {
      throw ToolError(.usage, "the \(what) is not base64 (standard alphabet, with padding)")
    }
    return bytes
  }

  var style: KeyStyle { KeyStyle(isBase64: isBase64) }
}

/// The option `--library-keys` of commands that list keys. By default these hide the reserved keys,
/// under which the library keeps indexes, caches and the state of a sync.
struct LibraryKeyOptions: ParsableArguments {
  @Flag(
    name: .customLong("library-keys"),
    help: "The library's own keys, too, which begin with \\0tidemark/.")
  var areListed = false

  /// Whether a key is listed: those of the library are where they are asked for, by the flag or a
  /// prefix.
  func shows(_ key: [UInt8], prefix: [UInt8]) -> Bool {
    areListed || !ReservedKeys.contains(key.rawSpan) || ReservedKeys.contains(prefix.rawSpan)
  }
}

/// How text output shows keys.
struct KeyStyle {
  var isBase64 = false

  func shown(_ key: [UInt8], on output: Output) -> [UInt8] {
    if isBase64 { return Array(key.base64.utf8) }
    return output.isTerminal ? Array(HumanText.escaped(key).utf8) : key
  }
}

/// Which keys are wanted by their labels.
struct LabelOptions: ParsableArguments {
  @Option(
    name: .customLong("label"),
    help: ArgumentHelp("Keys that carry this label.", valueName: "label"))
  var all: [String] = []

  @Option(
    name: .customLong("any-label"),
    help: ArgumentHelp("Keys that carry one of these labels at least.", valueName: "label"))
  var any: [String] = []

  @Option(
    name: .customLong("not-label"),
    help: ArgumentHelp("No keys that carry this label.", valueName: "label"))
  var not: [String] = []

  func filter() throws(ToolError) -> LabelFilter {
    try LabelFilter(all: Self.labels(all), any: Self.labels(any), not: Self.labels(not))
  }

  /// Labels that were given on the command line.
  static func labels(_ texts: [String]) throws(ToolError) -> [EntryLabel] {
    var labels: [EntryLabel] = []
    for text in texts {
      let label = Array(text.utf8)
      guard (1...Limits.labelBytes).contains(label.count) else {
        throw ToolError(
          .usage,
          "a label has \(label.count) bytes; labels have 1 to \(Limits.labelBytes) bytes")
      }
      labels.append(EntryLabel(label))
    }
    return labels
  }
}
