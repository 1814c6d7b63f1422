import Foundation

/// The program's own sync server as another process.
final class ServerProcess {
  let port: Int
  private let process = Process()
  private let path: String

  init(path: String) throws {
    self.path = path
    try? FileManager.default.removeItem(atPath: path)
    let output = Pipe()
    process.executableURL = URL(filePath: Program.path)
    process.arguments = ["serve", path]
    process.standardOutput = output
    try process.run()
    // The first thing that it says is its port.
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      process.terminate()
      throw BenchError("the server does not say its port")
    }
    self.port = port
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
    try? FileManager.default.removeItem(atPath: path)
  }
}

enum Program {
  /// Where this program is.
  static var path: String {
    Bundle.main.executablePath ?? CommandLine.arguments[0]
  }
}
