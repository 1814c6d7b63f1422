public import Foundation

/// The script `server.py` beside this file as a process, for those who try a program against it.
public final class RestScript {
  private let process = Process()
  /// The port that it listens on.
  public let port: Int
  public var url: String { "http://127.0.0.1:\(port)" }

  struct Failure: Error {}

  /// Starts it; it listens when this returns.
  /// - Parameters:
  ///   - file: its data.
  ///   - port: where it listens; by default where nobody does.
  public init(file: URL, port: Int = 0) throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "server.py")
    let pipe = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", script.path, file.path, "\(port)"]
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = ""
    while let byte = try pipe.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0a {
      line.append(Character(UnicodeScalar(byte)))
    }
    guard let port = Int(line) else { throw Failure() }
    self.port = port
  }

  /// Ends it as a crash does.
  public func stop() {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
