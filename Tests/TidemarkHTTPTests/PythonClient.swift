import Foundation

/// `Tools/sync-client`, each command a process of its own; its state file lies in a directory that
/// goes in the end.
final class PythonClient {
  struct Ended {
    var status: Int32
    /// The client's output, without the end of the last line.
    var output: String
    /// The lines of the client's standard error.
    var talk: [String]
  }

  /// Whether there is anything to run it with.
  static let canRun = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .contains { FileManager.default.isExecutableFile(atPath: "\($0)/python3") }

  private static let program = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Tools/sync-client")

  private let directory: URL
  /// The environment of the commands beside that of the tests.
  var environment: [String: String] = [:]

  /// A client without a state file; `init` makes one.
  init() throws {
    directory = FileManager.default.temporaryDirectory
      .appending(path: "sync-client-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  /// A client of a database.
  convenience init(of url: String) async throws {
    try self.init()
    try await run("init", url)
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  /// Another client with a copy of the state file.
  func copy() throws -> PythonClient {
    let copy = try PythonClient()
    try FileManager.default.copyItem(
      at: directory.appending(path: "sync-client.json"),
      to: copy.directory.appending(path: "sync-client.json"))
    return copy
  }

  /// Writes a file beside the state file.
  func write(_ content: [UInt8], to name: String) throws {
    try Data(content).write(to: directory.appending(path: name))
  }

  /// The content of a file beside the state file.
  func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: directory.appending(path: name)))
  }

  @discardableResult
  func run(_ arguments: String...) async throws -> Ended {
    // The server of the test needs the threads of tasks.
    try await withCheckedThrowingContinuation { [directory, environment] continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result { try Self.runHere(arguments, in: directory, environment) })
      }
    }
  }

  private static func runHere(
    _ arguments: [String], in directory: URL, _ environment: [String: String]
  ) throws -> Ended {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", program.path] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.currentDirectoryURL = directory
    process.standardInput = FileHandle.nullDevice
    let (output, talk) = (directory.appending(path: "output"), directory.appending(path: "talk"))
    for file in [output, talk] { try Data().write(to: file) }
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: talk)
    try process.run()
    process.waitUntilExit()
    let words = String(decoding: try Data(contentsOf: talk), as: UTF8.self)
    return Ended(
      status: process.terminationStatus,
      output: String(decoding: try Data(contentsOf: output), as: UTF8.self)
        .trimmingCharacters(in: .newlines),
      talk: words.split(separator: "\n").map(String.init))
  }
}
