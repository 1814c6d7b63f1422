internal import Foundation

/// A failure that ends the benchmark, as its figures would be wrong.
struct BenchError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Prints a line without buffering, also if the output is not a terminal.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// The temporary directory of one run.
struct Place: Sendable {
  let path: String

  init(in directory: String) throws {
    path = "\(directory)/tidemark-server-bench-\(UUID())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  func make(_ name: String) throws -> String {
    let made = "\(path)/\(name)-\(UUID())"
    try FileManager.default.createDirectory(atPath: made, withIntermediateDirectories: true)
    return made
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}

/// A server in another process.
final class ServerProcess {
  let port: Int
  private let process: Process

  /// - Parameter data: the directory of its databases, or the address of a PostgreSQL server.
  init(_ program: String, data: String, _ options: [String]) throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    let place = data.hasPrefix("/") ? "--data" : "--postgres"
    process.arguments = ["--port", "0", place, data, "--rate", "0"] + options
    // The environment that `Tools/server` sets.
    process.environment = ProcessInfo.processInfo.environment
      .merging(["MALLOC_ARENA_MAX": "2"]) { old, _ in old }
    let pipe = Pipe()
    process.standardError = pipe
    try process.run()
    var text = ""
    var found: Int?
    while found == nil {
      let data = pipe.fileHandleForReading.availableData
      guard !data.isEmpty else { throw BenchError("the server did not start: \(text)") }
      text += String(decoding: data, as: UTF8.self)
      for line in text.split(separator: "\n") where line.contains("ready") {
        found = line.split(separator: ":").last.flatMap { Int($0.prefix { $0.isNumber }) }
      }
    }
    guard let found else { throw BenchError("no port") }
    port = found
    // The log is read on, as the server would block on a full pipe.
    pipe.fileHandleForReading.readabilityHandler = { handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
    }
  }

  /// Resident bytes and threads now; zeros where the system has no `/proc`.
  var size: (bytes: Int, threads: Int) {
    let path = "/proc/\(process.processIdentifier)/status"
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return (0, 0) }
    func number(_ name: String) -> Int {
      let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
      return Int(line.drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
    }
    return (number("VmRSS") * 1024, number("Threads"))
  }

  /// The processor time of the server so far, in seconds.
  var processorSeconds: Double {
    let path = "/proc/\(process.processIdentifier)/stat"
    guard let text = try? String(contentsOfFile: path, encoding: .utf8),
      let end = text.lastIndex(of: ")")
    else { return 0 }
    let fields = text[end...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else {
      return 0
    }
    return (user + system) / 100
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }
}
