import Foundation
import Testing

/// The built tool as a process of its own, in a directory that is removed in the end.
final class ToolProcess {
  /// Where the tests and the tool were built.
  private static var products: URL {
    #if canImport(Darwin)
      for bundle in Bundle.allBundles where bundle.bundlePath.hasSuffix(".xctest") {
        return bundle.bundleURL.deletingLastPathComponent()
      }
    #endif
    return Bundle.main.bundleURL
  }

  static let tool = products.appending(path: "logtool")

  let directory: URL
  private var pourers: [Process] = []

  init() throws {
    directory = FileManager.default.temporaryDirectory
      .appending(path: "logtool-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit {
    for pourer in pourers {
      pourer.terminate()
      pourer.waitUntilExit()
    }
    try? FileManager.default.removeItem(at: directory)
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }

  func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: directory.appending(path: name))
  }

  /// Hands a file's content to whoever reads a pipe, which then stays open: a program that reads it
  /// is there when a signal comes, however late that is.
  func pour(_ name: String, into pipe: String) throws {
    let pourer = Process()
    pourer.executableURL = URL(filePath: "/bin/sh")
    pourer.currentDirectoryURL = directory
    pourer.arguments = ["-c", "exec >\(pipe); cat \(name); exec sleep 1000"]
    try #require(mkfifo(path(pipe), 0o600) == 0)
    try pourer.run()
    pourers.append(pourer)
  }

  struct Ended {
    var status: Int32
    var wasKilled: Bool
    var output: Data
    var lines: [String]
    var talk: String
  }

  /// Runs the tool, or another program, in the directory.
  /// - Parameters:
  ///   - signal: what it is sent.
  ///   - lines: after so many lines of output.
  ///   - microseconds: and so much time more.
  ///   - program: what is run in the tool's place.
  func run(
    _ arguments: [String], program: URL = tool, environment: [String: String] = [:],
    signal: Int32? = nil, afterLines lines: Int = 0, microseconds: UInt32 = 0
  ) throws -> Ended {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.currentDirectoryURL = directory
    let output = Pipe()
    let talk = directory.appending(path: "talk")
    try Data().write(to: talk)
    process.standardOutput = output
    process.standardError = try FileHandle(forWritingTo: talk)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    var data = Data()
    var isSent = signal == nil
    while true {
      if !isSent, let signal, data.count(where: { $0 == 10 }) >= lines {
        usleep(microseconds)
        kill(process.processIdentifier, signal)
        isSent = true
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      data.append(more)
    }
    process.waitUntilExit()
    return Ended(
      status: process.terminationStatus,
      wasKilled: process.terminationReason == .uncaughtSignal,
      output: data,
      lines: String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init),
      talk: String(decoding: try Data(contentsOf: talk), as: UTF8.self))
  }

  /// The names and values that a command prints as JSON.
  func json(_ arguments: String...) throws -> [String: Any] {
    let ended = try run(arguments + ["--output", "json"])
    let text = ended.lines.joined()
    return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
  }
}
