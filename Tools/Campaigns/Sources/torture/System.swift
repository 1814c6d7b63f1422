#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif
import ArgumentParser
@_spi(Campaigns) import TidemarkTestKit

/// Text for the user, shown at once.
enum Output {
  static func line(_ text: String) {
    print(text)
    fflush(nil)
  }
}

/// The machine's cores.
enum Cores {
  static var count: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

/// Failing scripts in files.
enum Failures {
  static func report(_ failure: CampaignFailure, directory: String) throws {
    Output.line("\(failure)")
    let path = directory + "/torture-\(failure.campaign.rawValue)-\(failure.seed).txt"
    try Files.write("\(failure)", to: path)
    Output.line("run it again with: Tools/torture \(failure.campaign.rawValue) --replay \(path)")
  }

  static func replay(_ path: String, _ campaign: Campaign, encrypted: Bool) throws {
    let script = try Script(parsing: try Files.read(path))
    do {
      let report = try campaign.run(script, encrypted: encrypted)
      Output.line("\(report.runs) runs, nothing failed")
    } catch let failure as CampaignFailure {
      Output.line("FAILED: \(failure)")
      throw ExitCode.failure
    }
  }
}

/// Whole files as text.
enum Files {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "w") else { throw Failure(description: "cannot write \(path)") }
    defer { fclose(file) }
    let bytes = Array(text.utf8)
    guard fwrite(bytes, 1, bytes.count, file) == bytes.count else {
      throw Failure(description: "cannot write \(path)")
    }
  }

  static func read(_ path: String) throws -> String {
    guard let file = fopen(path, "r") else { throw Failure(description: "cannot read \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count <= 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(contentsOf: buffer[..<count])
    }
  }
}
