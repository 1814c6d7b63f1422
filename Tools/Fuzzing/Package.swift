// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nothing of the libraries depends on libFuzzer: `Tools/fuzz` builds
// it with the sanitizers on. The targets' bodies are in TidemarkTestKit.
let package = Package(
  name: "fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "tidemark", path: "../..")],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [.product(name: "TidemarkTestKit", package: "tidemark")],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
      ])
  ],
  swiftLanguageModes: [.v6]
)
