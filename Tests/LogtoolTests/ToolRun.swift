import Foundation
import LogtoolKit
import Tidemark
import TidemarkEngine
import TidemarkTestKit

/// The outcome of one call of the tool.
struct ToolRun {
  var status: Int32
  var bytes: [UInt8]
  var talk: String

  var output: String { String(decoding: bytes, as: UTF8.self) }
  var lines: [String] { output.split(separator: "\n").map(String.init) }

  /// The output as one JSON object.
  func object() throws -> [String: Any] {
    try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
  }

  /// The output as one JSON object a line.
  func objects() throws -> [[String: Any]] {
    try lines.map { line in
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
    }
  }

  /// The names in the object with those inside it, as "bytes.log", sorted.
  func names() throws -> [String] { Self.names(try object(), "").sorted() }

  static func names(_ object: [String: Any], _ prefix: String) -> Set<String> {
    var names: Set<String> = []
    for (name, value) in object {
      names.insert(prefix + name)
      let inner = (value as? [Any])?.first ?? value
      if let inner = inner as? [String: Any] {
        names.formUnion(Self.names(inner, "\(prefix)\(name)."))
      }
    }
    return names
  }
}

/// A disk in memory, with the tool run on it.
struct Bench {
  let disk: any FileSystem
  let clock = ManualClock()
  private let random = SeededRandom(seed: 7)
  var isTerminal = false
  var environment: [String: String] = [:]

  init(disk: any FileSystem = MemoryFileSystem()) { self.disk = disk }

  @discardableResult
  func run(
    _ arguments: String..., input: String = "",
    interrupted: @escaping @Sendable () -> Bool = { false }
  ) -> ToolRun {
    run(arguments, input: Array(input.utf8), interrupted: interrupted)
  }

  @discardableResult
  func run(
    _ arguments: [String], input: [UInt8] = [],
    interrupted: @escaping @Sendable () -> Bool = { false },
    configure: (Console) -> Void = { _ in }
  ) -> ToolRun {
    let output = MemorySink(isTerminal: isTerminal)
    let talk = MemorySink(isTerminal: isTerminal)
    let variables = environment
    let console = Console(
      output: output, errors: talk, input: { InputStream.memory(input) },
      environment: { variables[$0] },
      storeEnvironment: Store.Environment(
        fileSystem: disk, clock: clock, random: random),
      isInterrupted: interrupted, stopGracefully: {})
    configure(console)
    let status = LogtoolMain.run(arguments, console: console)
    return ToolRun(status: status, bytes: output.bytes, talk: talk.text)
  }

  /// Opens a store for writing, as another program would.
  func open(_ path: String) throws -> Store {
    try Store.openBlocking(
      at: path,
      configuration: Store.Configuration(
        environment: Store.Environment(
          fileSystem: disk, clock: clock, random: random), usesThreads: false))
  }
}

extension Bench {
  /// Entries that most tests begin with, six lines on four keys.
  static let notes = """
    {"key":"note/1","value":"milk","labels":["inbox","home"],"time":"2026-01-01T00:00:00Z"}
    {"key":"note/2","value":"call","labels":["inbox"],"time":"2026-01-02T00:00:00Z","hash":"h2"}
    {"key":"task/1","value":"paint","labels":["home"],"time":"2026-01-03T00:00:00Z"}
    {"key":"note/1","value":"milk, bread","labels":["inbox"],"time":"2026-01-04T00:00:00Z"}
    {"op":"delete","key":"note/2","time":"2026-01-05T00:00:00Z"}
    {"key":"note/3","value":"\\u0000\\n","max_age":60,"class":"cache"}

    """

  /// A bench with a store "S" that holds them.
  static func withNotes() -> Bench {
    let bench = Bench()
    bench.run("import", "S", input: notes)
    return bench
  }
}

extension Bench {
  /// All files below a directory with their bytes.
  func files(in path: String) throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in try disk.list(path) {
      let place = path + "/" + name
      switch try disk.kind(place) {
      case .directory: files.merge(try self.files(in: place)) { a, _ in a }
      case .file:
        let file = try disk.open(place, .read)
        defer { file.close() }
        files[place] = try file.read(try file.length(), at: 0)
      default: break
      }
    }
    return files
  }

  /// Puts a directory's files back as they were.
  func restore(_ files: [String: [UInt8]], to path: String) throws {
    for place in try self.files(in: path).keys { try disk.remove(place) }
    for (place, bytes) in files {
      let file = try disk.open(place, .create)
      try file.writeFully(bytes.rawSpan, at: 0)
      file.close()
    }
  }
}
