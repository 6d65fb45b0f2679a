#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json/json.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using test::message_of;

const Json network = Json::parse(R"({
  "schema_version": 1, "name": "n", "batch": 2,
  "layers": [
    {"name": "data", "kind": "input", "channels": 1, "size": [4, 4]},
    {"name": "conv", "kind": "convolution", "filters": 2, "kernel": 3, "stride": [1, 2],
        "padding": [[0, 1], 1]},
    {"name": "loss", "kind": "mean_squared_error"}
  ]})");

TEST(ValidateJson, AcceptsAGoodDocument) {
  EXPECT_EQ(message_of([] { validate_json(network, "network", "net.json"); }), "no exception");
}

struct Offence {
  const char* pointer;  // the place where a value is replaced or added
  const char* value;
  const char* says;
};

TEST(ValidateJson, NamesPlaceAndExpectation) {
  const Offence table[] = {
      {"/layers/1/stride", "0",
       "net.json: at /layers/1/stride: expected an integer from 1 to 2147483647, found 0"},
      {"/layers/1/stride", "-3",
       "net.json: at /layers/1/stride: expected an integer from 1 to 2147483647, found -3"},
      {"/layers/1/stride/1", "0",
       "net.json: at /layers/1/stride/1: expected an integer from 1 to 2147483647, found 0"},
      {"/layers/1/stride", "1.5",
       "net.json: at /layers/1/stride: expected an integer from 1 to 2147483647 or a list of 2 to "
       "3 integers from 1 to 2147483647, "
       "found 1.5"},
      {"/layers/1/stride", "99999999999999999999",
       "net.json: at /layers/1/stride: expected an integer from 1 to 2147483647 or a list of 2 to "
       "3 integers from 1 to 2147483647, "
       "found 1e+20"},
      {"/layers/1/padding/0", "[1, 2, 3]",
       "net.json: at /layers/1/padding/0: expected a list of 2 integers from -2147483647 to "
       "2147483647, "
       "found array"},
      {"/layers/1/bias", "\"yes\"",
       "net.json: at /layers/1/bias: expected true or false, found \"yes\""},
      {"/layers/1/strde", "2",
       "net.json: at /layers/1: unknown key \"strde\" (did you mean \"stride\"?)"},
      {"/layers/1/quux", "2", "net.json: at /layers/1: unknown key \"quux\""},
      {"/layers/1/a~1b~0", "2", "net.json: at /layers/1: unknown key \"a/b~\""},
      {"/layers", "[]", "net.json: at /layers: expected a list of at least 1 objects, found array"},
      {"/layers/2", "{\"name\": \"loss\"}", "net.json: at /layers/2: the key \"kind\" is missing"},
      {"/batch", "null",
       "net.json: at /batch: expected an integer from 1 to 2147483647, found null"},
      {"/name", "\"\"", "net.json: at /name: expected a non-empty string, found \"\""},
      {"/schema_version", "3",
       "net.json: at /schema_version: expected schema version 1 to 2 of network.json, found "
       "version 3"},
  };
  for (const Offence& row : table) {
    Json document = network;
    document[Json::json_pointer(row.pointer)] = Json::parse(row.value);
    EXPECT_EQ(message_of<InputError>([&] { validate_json(document, "network", "net.json"); }),
              row.says);
  }
}

TEST(ValidateJson, OffersTheNearestChoice) {
  Json document = network;
  document["layers"][1]["kind"] = "convolutoin";
  const std::string message =
      message_of<InputError>([&] { validate_json(document, "network", "net.json"); });
  EXPECT_THAT(message,
              testing::StartsWith("net.json: at /layers/1/kind: found \"convolutoin\" (did "
                                  "you mean \"convolution\"?); expected one of "));
}

TEST(ValidateJson, EscapesKeysInPointers) {
  const Json plan = Json::parse(
      R"({"schema_version": 1, "network": {"source": "n"}, "batch": 1, "ranks": 1,
          "layers": {"a/b~c": {"grid": 3}}})");
  EXPECT_EQ(message_of([&] { validate_json(plan, "plan", "p.json"); }),
            "p.json: at /layers/a~1b~0c/grid: expected a non-empty string, found 3");
}

TEST(ValidateJson, KnowsEveryKindOfFile) {
  struct Row {
    const char* kind;
    const char* least;  // the smallest valid document
  };
  const Row table[] = {
      {"network",
       R"({"schema_version": 1, "name": "n", "batch": 1, "layers": [{"name": "a",
           "kind": "relu"}]})"},
      {"machine",
       R"({"schema_version": 1, "name": "m", "levels": [{"name": "core", "ranks": 2,
           "latency_seconds": 0, "bandwidth_bytes_per_s": 1e9}],
                      "device": {"flops_per_s": 1e9, "bytes_per_s": 1e9, "launch_seconds": 0,
                          "memory_bytes": 1000}})"},
      {"plan", R"({"schema_version": 1, "network": {"source": "n"}, "batch": 1, "ranks": 1})"},
      {"timings",
       R"({"schema_version": 1, "plan": {"name": "p", "network": "n", "batch": 1, "ranks": 1},
                      "step_seconds": {"median": 1, "p10": 1, "p90": 1, "samples": [1]},
                          "losses": [0.5, null], "ranks": []})"},
  };
  for (const Row& row : table) {
    Json document = Json::parse(row.least);
    EXPECT_EQ(message_of([&] { validate_json(document, row.kind, "f"); }), "no exception")
        << row.kind;
    document["surprise"] = 1;
    EXPECT_EQ(message_of([&] { validate_json(document, row.kind, "f"); }),
              "f: unknown key \"surprise\"")
        << row.kind;
    EXPECT_EQ(message_of([&] { validate_json(Json::array(), row.kind, "f"); }),
              "f: expected an object, found array")
        << row.kind;
  }
}

TEST(ValidateJson, TellsAFileOfAnotherKind) {
  EXPECT_EQ(message_of([&] { validate_json(network, "plan", "f"); }),
            "f: expected a plan file, but this is a network file");
}

TEST(ValidateJson, RequiresAVersion) {
  Json document = network;
  document.erase("schema_version");
  EXPECT_EQ(message_of([&] { validate_json(document, "network", "f"); }),
            "f: the key \"schema_version\" is missing");
}

}  // namespace
}  // namespace stratplan
