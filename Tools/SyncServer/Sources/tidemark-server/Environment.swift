internal import ArgumentParser

#if canImport(Darwin)
  internal import Foundation
#else
  internal import FoundationEssentials
#endif

/// Settings from environment variables: `TIDEMARK_NAME` stands for `--name`.
enum Environment {
  /// The value of `TIDEMARK_NAME`; nil also for an empty one.
  static func text(_ name: String) -> String? {
    let text = ProcessInfo.processInfo.environment["TIDEMARK_" + name]
    return text == "" ? nil : text
  }

  /// The option groups of `tidemark-server` where it serves (no subcommand). An environment
  /// variable can set each of these options.
  static var all: [any ParsableArguments] {
    [
      ServingOptions(), PostgresArguments(), AccessOptions(), LimitOptions(), AttachmentOptions(),
      KeepingOptions(), RunningOptions(),
    ]
  }

  /// Arguments for the options that have a variable and are not in the command line.
  /// - Parameters:
  ///   - given: the arguments of the command line.
  ///   - groups: the options that the command takes.
  ///   - text: the value of a variable.
  /// - Throws: for a flag's variable that is neither 1 nor 0.
  static func arguments(
    besides given: [String], of groups: [any ParsableArguments] = all,
    _ text: (String) -> String? = Environment.text
  ) throws -> [String] {
    return try groups.flatMap { Mirror(reflecting: $0).children }.flatMap { child -> [String] in
      // The storage of the option `--max-body` has the label `_maxBody`.
      let words = (child.label ?? "").dropFirst().map { $0.isUppercase ? "-\($0)" : "\($0)" }
      let option = "--" + words.joined().lowercased()
      let name = String(option.dropFirst(2).uppercased().map { $0 == "-" ? "_" : $0 })
      guard let value = text(name),
        !given.contains(where: { $0 == option || $0.hasPrefix(option + "=") })
      else { return [] }
      switch child.value {
      case is Flag<Bool>:
        switch value {
        case "1", "true", "yes": return [option]
        case "0", "false", "no": return []
        default: throw ValidationError("TIDEMARK_\(name) has to be 1 or 0")
        }
      case is Option<[String]>:
        return value.split(whereSeparator: \.isWhitespace).map { "\(option)=\($0)" }
      default: return ["\(option)=\(value)"]
      }
    }
  }
}
