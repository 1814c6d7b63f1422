import Foundation

/// This program again, as a process that measures.
struct ChildProcess {
  var lines: [ChildLine] = []
  /// The reason why it did not end well.
  var failure: String?
  var wasKilled = false

  static func run(_ arguments: [String]) -> ChildProcess {
    let process = Process()
    process.executableURL = URL(filePath: Program.path)
    process.arguments = arguments
    let output = Pipe()
    let errors = Pipe()
    process.standardOutput = output
    process.standardError = errors
    var result = ChildProcess()
    do {
      try process.run()
    } catch {
      result.failure = "\(error)"
      return result
    }
    // Errors are a line or two and wait in the pipe.
    let data = output.fileHandleForReading.readDataToEndOfFile()
    let complaint = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let decoder = JSONDecoder()
    result.lines = data.split(separator: UInt8(ascii: "\n")).compactMap {
      try? decoder.decode(ChildLine.self, from: Data($0))
    }
    result.wasKilled = process.terminationReason == .uncaughtSignal
    if process.terminationStatus != 0 || result.wasKilled {
      let text = String(decoding: complaint, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      // A crash says much more than fits here.
      result.failure =
        text.isEmpty ? "ended with \(process.terminationStatus)" : String(text.prefix(400))
    }
    return result
  }
}
